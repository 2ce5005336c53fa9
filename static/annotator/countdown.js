// Says how much time is left for a statement: in sight all along, aloud only at five minutes, at one and at the end.
(() => {
  const time = document.getElementById("time");
  const spoken = document.getElementById("time-spoken");
  if (!time?.dataset.secondsLeft) return;
  const MINUTE = 60;
  const UNITS = [[86400, "day"], [3600, "hour"], [MINUTE, "minute"]];
  const OVER = "The time is over. Answers are still kept and paid.";
  const end = Date.now() + time.dataset.secondsLeft * 1000;
  let unsaid = [5 * MINUTE, MINUTE].filter((mark) => mark < time.dataset.secondsLeft);

  // As annotator/rendering.py says it.
  function inWords(seconds) {
    if (seconds < MINUTE) return "less than a minute";
    const [unit, name] = UNITS.find(([unit]) => seconds >= 2 * unit || unit === MINUTE);
    const number = Math.round(seconds / unit);
    return `${number} ${name}${number === 1 ? "" : "s"}`;
  }

  function show() {
    const left = Math.ceil((end - Date.now()) / 1000);
    if (left <= 0) {
      clearInterval(ticking);
      time.textContent = spoken.textContent = OVER;
      return;
    }
    time.querySelector("b").textContent = inWords(left);
    if (unsaid.some((mark) => left <= mark)) {
      unsaid = unsaid.filter((mark) => left > mark);
      spoken.textContent = `${inWords(left)} left.`;
    }
  }

  const ticking = setInterval(show, 1000);
})();
