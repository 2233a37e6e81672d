"use strict";
(() => {
  const content = JSON.parse(document.getElementById("data").textContent);
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const config = { displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d"] };
  let printing = false;

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // Where a legend begins, in heights of the plot: under the title of the axis, however little of the height it leaves.
  function below(figure, width, height) {
    const named = figure.traces.filter((trace) => trace.showlegend !== false).map((trace) => trace.name || "");
    const wide = 45 + 6.2 * Math.max(0, ...named.map((name) => name.length));
    const rows = Math.ceil(named.length / Math.max(1, Math.floor((width - 64) / wide)));
    return -52 / Math.max(100, height - 86 - 19 * rows);
  }

  function layout(figure, width, height) {
    const palette = dark.matches && !printing ? content.dark : content.light;
    // One label a decade on a logarithmic axis, unless there is less than a decade to label.
    const decades = (name) => {
      const values = figure.traces.flatMap((trace) => trace[name] || []).filter((v) => typeof v === "number" && v > 0);
      return values.length ? Math.log10(Math.max(...values) / Math.min(...values)) : 0;
    };
    const axis = (given, name) => ({
      title: { text: given.title, font: { size: 13 }, standoff: 8 },
      type: given.type,
      gridcolor: css("--grid"),
      linecolor: css("--line"),
      zeroline: false,
      automargin: true,
      exponentformat: "power",
      ...(given.type === "log" && decades(name) >= 1 ? { dtick: Math.max(1, Math.ceil(decades(name) / 8)) } : {}),
    });
    return {
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: "system-ui, sans-serif", size: 12, color: css("--ink") },
      margin: { l: 54, r: 10, t: 34, b: 44 },
      width,
      height,
      autosize: false,
      modebar: { bgcolor: "rgba(0,0,0,0)", color: css("--quiet"), activecolor: css("--ink") },
      xaxis: axis(figure.xaxis, "x"),
      yaxis: axis(figure.yaxis, "y"),
      barmode: "group",
      hovermode: "closest",
      hoverlabel: { namelength: -1 },
      showlegend: figure.traces.every((trace) => trace.type !== "heatmap"),
      legend: { orientation: "h", traceorder: "normal", y: below(figure, width, height), x: 0, font: { size: width < 480 ? 11 : 12 } },
      shapes: figure.marks.map((mark) => ({
        type: "line", xref: "x", yref: "paper", x0: mark.x, x1: mark.x, y0: 0, y1: 1,
        line: { color: palette[mark.colour], dash: "dot", width: 1.5 },
      })),
    };
  }

  function traces(figure) {
    const palette = dark.matches && !printing ? content.dark : content.light;
    const faint = (colour) => `${palette[colour]}2e`; // behind the line
    return figure.traces.map(({ colour, band, ...trace }) => {
      if (trace.type === "heatmap") {
        return { ...trace, colorscale: [[0, `${palette[1]}55`], [0.5, `${palette[6]}33`], [1, `${palette[2]}55`]], textfont: { color: css("--ink") } };
      }
      return {
        ...trace,
        ...(band ? { fillcolor: faint(colour) } : {}),
        line: trace.line && { ...trace.line, color: palette[colour] },
        marker: { ...(trace.marker || {}), color: palette[colour] },
      };
    });
  }

  // In a narrow plot each entry of the legend takes a line; more than five would leave too little for the axes.
  function legendRoom(figure, width) {
    const named = figure.traces.filter((trace) => trace.showlegend !== false && trace.type !== "heatmap");
    return width < 480 ? 19 * Math.max(0, named.length - 5) : 0;
  }

  const plots = [...document.querySelectorAll(".plot")];
  async function draw(plot) {
    const figure = content.figures[plot.dataset.key];
    // On paper the size is the style sheet's own: the page has not been laid out for it yet.
    plot.style.height = "";
    const [width, least] = printing ? [325, 300] : [plot.clientWidth, plot.clientHeight];
    const height = least + legendRoom(figure, width);
    plot.style.height = `${height}px`;
    plot.dataset.width = width;
    await Plotly.react(plot, traces(figure), layout(figure, width, height), config);
    plot.dataset.drawn = "yes";
  }
  async function drawAll() {
    for (const plot of plots) await draw(plot);
    document.documentElement.dataset.ready = "yes";
  }
  dark.addEventListener("change", drawAll);
  const watch = new ResizeObserver((seen) => {
    for (const { target } of seen) {
      if (!printing && target.dataset.drawn && Math.abs(target.clientWidth - Number(target.dataset.width)) > 1) draw(target);
    }
  });
  plots.forEach((plot) => watch.observe(plot));
  addEventListener("beforeprint", () => { printing = true; plots.forEach(draw); }); // at once: nobody waits for promises
  addEventListener("afterprint", () => { printing = false; drawAll(); });

  const table = document.querySelector("#summary table");
  const body = table.tBodies[0];
  const headings = [...table.querySelectorAll("th")];
  function key(row, name) {
    if (name === "order" || name === "verdict") return Number(row.dataset[name]);
    return row.querySelector(`td[data-label="${name}"]`).textContent.trim().toLowerCase();
  }
  function sort(name, down) {
    const rows = [...body.rows];
    rows.sort((a, b) => {
      const [x, y] = [key(a, name), key(b, name)];
      const sign = typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
      return (down ? -sign : sign) || Number(a.dataset.order) - Number(b.dataset.order);
    });
    body.append(...rows);
    for (const th of headings) {
      if (th.dataset.sort === name) th.setAttribute("aria-sort", down ? "descending" : "ascending");
      else th.removeAttribute("aria-sort");
    }
  }
  for (const th of headings) {
    th.querySelector("button").addEventListener("click", () => sort(th.dataset.sort, th.getAttribute("aria-sort") === "ascending"));
  }
  // report.html?sort=verdict opens the page sorted.
  const wanted = new URLSearchParams(location.search).get("sort");
  if (headings.some((th) => th.dataset.sort === wanted)) sort(wanted, false);

  drawAll();
})();
