// Draws the figures of reports as they come into view, and gives them as files. The tables stand without it.
(() => {
  // The figures are made for white paper; these colours stand in their place on a dark page.
  const DARK = { "#1f2430": "#e6e9ef", "#3A3A3A": "#d5dae3", "#d9dee7": "#343b49", "#8a93a3": "#6b7484", "#7F7F7F": "#a9b2c2", "#0072B2": "#4aa3df" };
  const WIDTH = 900;
  const isDark = () => document.documentElement.classList.contains("dark");
  const made = (figure) => JSON.parse(document.getElementById(figure.dataset.chart).textContent);

  const onPhone = matchMedia("(max-width: 640px)");
  const CELL = 56;

  // Axis titles have no room on a phone, where the sentence above says the same; a heatmap is scrolled sideways.
  const forPhone = ({ data, layout }, figure) => {
    for (const axis of [layout.xaxis, layout.yaxis]) if (axis) delete axis.title;
    const [first] = data;
    const width = first?.type === "heatmap" ? CELL * (first.x.length + 2) : 0;
    const isWide = width > figure.clientWidth;
    figure.classList.toggle("is-wide", isWide);
    if (isWide) {
      figure.tabIndex = 0;
      Object.assign(layout, { autosize: false, width });
    }
    if (!isWide && layout.xaxis?.type === "category") layout.height += 80;
  };

  const forPage = (figure) => {
    const chart = made(figure);
    if (onPhone.matches) forPhone(chart, figure);
    if (isDark()) {
      const written = JSON.stringify(chart).replace(/"(#[0-9A-Fa-f]{6})"/g, (all, colour) => `"${DARK[colour] || colour}"`);
      Object.assign(chart, JSON.parse(written));
    }
    chart.layout.paper_bgcolor = chart.layout.plot_bgcolor = "rgba(0,0,0,0)";
    // A finger that moves over a figure scrolls the page.
    if (matchMedia("(pointer: coarse)").matches) chart.layout.dragmode = false;
    return chart;
  };

  const draw = (figure) => {
    const { data, layout } = forPage(figure);
    figure.style.minHeight = `${layout.height}px`;
    return Plotly.react(figure, data, layout, { responsive: true, displayModeBar: false });
  };

  const inView = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      inView.unobserve(target);
      draw(target).then(() => target.classList.add("drawn"));
    }
  }, { rootMargin: "800px" });

  const prepare = (part) => {
    for (const figure of part.querySelectorAll("figure.plot:not(.drawn)")) inView.observe(figure);
    // Those were kept when the part around them was renewed: their numbers may be new.
    for (const figure of part.querySelectorAll("figure.plot.drawn[hx-preserve]")) draw(figure);
    for (const button of part.querySelectorAll("[data-download]")) button.hidden = false;
  };

  // Filters that are not set have no place in an address that is shared.
  document.addEventListener("submit", ({ target: form }) => {
    if (form.method !== "get") return;
    for (const field of form.elements) if (field.name && field.value === "") field.disabled = true;
    addEventListener("pageshow", () => { for (const field of form.elements) field.disabled = false; }, { once: true });
  });

  document.addEventListener("click", async (event) => {
    const button = event.target.closest("[data-download]");
    if (!button) return;
    const figure = button.closest("section").querySelector("figure.plot");
    const { data, layout } = made(figure);
    const title = { text: figure.dataset.title, x: 0.02, xanchor: "left", y: 1, yanchor: "top", yref: "container", pad: { t: 12 }, automargin: true };
    const size = { width: WIDTH, height: (layout.height || 400) + 50 };
    await Plotly.downloadImage({ data, layout: { ...layout, ...size, title } }, { format: button.dataset.download, filename: figure.dataset.name, ...size, scale: button.dataset.download === "png" ? 2 : 1 });
  });

  new MutationObserver(() => document.querySelectorAll("figure.plot.drawn").forEach(draw)).observe(document.documentElement, { attributeFilter: ["class"] });
  document.addEventListener("htmx:load", (event) => prepare(event.detail.elt));
  prepare(document);
})();
