// Keys answer the question that has the focus, or else the first one that has no answer, and lead on to the next.
(() => {
  const form = document.getElementById("answers");
  const cover = document.getElementById("cover");
  const questions = [...form.querySelectorAll("fieldset")];
  document.documentElement.classList.add("has-keys"); // shows the hints

  const answered = (question) => question.querySelector(':checked:not([value=""])') !== null;
  const isTyping = (target) => target.closest("input[type=text], textarea, [contenteditable]") !== null;

  function choose(choice) {
    if (choice.matches("option")) {
      const list = choice.closest("select");
      list.value = choice.value;
      list.dispatchEvent(new Event("change", { bubbles: true }));
    } else {
      choice.click();
    }
  }

  // A text that the answer asks for comes first, then the questions after this one, then those before, then the button.
  function goOn(question) {
    const here = questions.indexOf(question);
    const inOrder = [...questions.slice(here + 1), ...questions.slice(0, here)];
    const text = question.querySelector("input[type=text]");
    const chosen = question.querySelector(":checked");
    if (text && !text.value && chosen.matches("[data-asks-for-text]")) return text.focus();
    const next = inOrder.find((other) => !answered(other));
    (next ? next.querySelector("input, select") : form.querySelector(":scope > button")).focus();
    next?.scrollIntoView({ block: "nearest" });
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey || event.isComposing || event.repeat) return;
    if (event.defaultPrevented || isTyping(event.target)) return;
    const key = event.key.toLowerCase();
    if (key === "u" && cover && !event.target.matches("select")) {
      cover.open = !cover.open;
      return;
    }
    const question = event.target.closest("fieldset") ?? questions.find((other) => !answered(other));
    const choice = question?.querySelector(`[data-key="${CSS.escape(key)}"]`);
    if (!choice) return;
    event.preventDefault(); // or a list would look for an entry that begins with the key
    choose(choice);
    goOn(question);
  });
})();
