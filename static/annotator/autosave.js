// Saves what is typed as a draft on the server, a second after the last change and when the page is left. What could
// not be saved is kept in this browser, and offered when the statement is opened again.
(() => {
  const form = document.getElementById("answers");
  const status = document.getElementById("saved");
  const address = form.dataset.draft;
  const SOON = 1000;
  const RETRIES = [3000, 10000, 30000, 60000];
  const TROUBLE = {
    403: "Not saved yet: your log-in has ended. Keep this page open, and open your invite link in another tab.",
    404: "Not saved: this statement is not yours any more.",
    410: "Not saved: you submitted or returned this statement elsewhere.",
  };
  const UNREACHABLE = "Not saved yet: the server cannot be reached. Keep this page open; it tries again by itself.";
  const USELESS = [404, 410];
  let timer, failures = 0, changed = false, sending = false, submitting = false;

  const typed = () => new URLSearchParams(new FormData(form));

  // --- Saving

  function saveIn(milliseconds) {
    clearTimeout(timer);
    timer = setTimeout(save, milliseconds);
  }

  async function save() {
    if (!changed || submitting) return;
    if (sending) return saveIn(SOON);
    sending = true;
    const answer = await post();
    sending = false;
    if (submitting) return;
    if (answer?.ok) {
      failures = 0;
      say("Saved");
      if (changed) saveIn(SOON);
      else copy.forget();
    } else {
      changed = true;
      copy.keep();
      say(TROUBLE[answer?.status] ?? UNREACHABLE);
      if (!USELESS.includes(answer?.status)) saveIn(RETRIES[Math.min(failures++, RETRIES.length - 1)]);
    }
  }

  // Kept alive, a request arrives also when the page is left meanwhile.
  function post() {
    changed = false;
    return fetch(address, { method: "POST", body: typed(), redirect: "error", keepalive: true }).catch(() => null);
  }

  // Said only when it is new, since a screen reader reads every change.
  function say(sentence) {
    if (status.textContent !== sentence) status.textContent = sentence;
    status.classList.toggle("trouble", sentence !== "Saved");
  }

  function change(event) {
    if (event.target.form !== form) return;
    changed = true;
    submitting = false; // was given up
    if (failures === 0) saveIn(SOON);
  }

  function leave() {
    if (!changed || submitting) return;
    copy.keep();
    sending = false; // no time to wait for the one under way
    save();
  }

  // Who gives the statement back loses what they typed: they are asked, if there is something.
  function ask(event) {
    const question = event.target.dataset.confirm;
    const hasBegun = [...typed()].some(([name, value]) => value && name !== "csrfmiddlewaretoken");
    if (question && hasBegun && !confirm(question)) event.preventDefault();
  }

  document.addEventListener("submit", ask);
  document.addEventListener("input", change);
  document.addEventListener("change", change);
  window.addEventListener("pagehide", leave);
  // Who comes back from logging in, or online again, need not wait for the next attempt.
  document.addEventListener("visibilitychange", () => (document.hidden ? leave() : save()));
  window.addEventListener("online", save);
  // What is submitted is no draft any more. Its copy stays until another page shows that it has arrived.
  form.addEventListener("submit", () => {
    submitting = true;
    copy.keep();
  });
  window.addEventListener("pageshow", () => (submitting = false));

  // --- The copy in this browser

  const PREFIX = "humanval draft ";
  const LONG_AGO = 30 * 24 * 3600 * 1000;
  const copy = {
    keep() {
      const fields = [...typed()].filter(([name, value]) => value && name !== "csrfmiddlewaretoken");
      inStorage((storage) => storage.setItem(PREFIX + address, JSON.stringify({ fields, submitting, at: Date.now() })));
    },
    read: () => inStorage((storage) => JSON.parse(storage.getItem(PREFIX + address))),
    forget: () => inStorage((storage) => storage.removeItem(PREFIX + address)),
    forgetOthers: () =>
      inStorage((storage) => {
        for (const name of Object.keys(storage).filter((name) => name.startsWith(PREFIX) && !name.endsWith(address))) {
          const { submitting, at } = JSON.parse(storage.getItem(name));
          if (submitting || at < Date.now() - LONG_AGO) storage.removeItem(name);
        }
      }),
  };

  // A browser may forbid storage, or have none left: then there is no copy.
  function inStorage(act) {
    try {
      return act(localStorage);
    } catch {
      return null;
    }
  }

  function fill(fields) {
    for (const [name, value] of fields) {
      const field = form.elements[name];
      if (field?.type === "checkbox") field.checked = true;
      else if (field) field.value = value;
    }
    changed = true;
    save();
  }

  function offer(fields) {
    const offered = document.getElementById("kept");
    offered.hidden = false;
    offered.addEventListener("click", ({ target }) => {
      if (target.value === "restore") fill(fields);
      else if (target.value === "forget") copy.forget();
      else return;
      offered.hidden = true;
      form.querySelector("input[type=radio]").focus();
    });
  }

  copy.forgetOthers();
  const kept = copy.read();
  const shown = typed();
  if (kept?.fields.some(([name, value]) => shown.get(name) !== value)) offer(kept.fields);
  else copy.forget();
})();
