// Texts of the page whose contrast with what lies under them is below 4.5:1 (WCAG 2.2, 1.4.3), or 3:1 if they are large.
const parse = (color) => {
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  canvas.fillStyle = color;
  canvas.fillRect(0, 0, 1, 1);
  const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
  return [r, g, b, a / 255];
};
const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a), 1];
const luminance = ([r, g, b]) => {
  const [x, y, z] = [r, g, b].map((each) => (each / 255 <= 0.04045 ? each / 255 / 12.92 : ((each / 255 + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const cache = new Map();
const colorOf = (text) => {
  if (!cache.has(text)) cache.set(text, parse(text));
  return cache.get(text);
};
const under = (element) => {
  const layers = [];
  for (let at = element; at; at = at.parentElement) {
    const layer = colorOf(getComputedStyle(at).backgroundColor);
    if (layer[3] > 0) layers.push(layer);
    if (layer[3] === 1) break;
  }
  return layers.reverse().reduce((below, layer) => over(layer, below), [255, 255, 255, 1]);
};
const poor = [];
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
for (let node = walker.nextNode(); node; node = walker.nextNode()) {
  const element = node.parentElement;
  if (!node.textContent.trim() || !element.checkVisibility() || element.closest("svg, option, noscript, .hidden, [disabled]")) continue;
  const style = getComputedStyle(element);
  const back = under(element);
  const front = over(colorOf(style.color), back);
  const [a, b] = [luminance(front), luminance(back)].sort((x, y) => y - x);
  const size = parseFloat(style.fontSize);
  const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
  const ratio = (a + 0.05) / (b + 0.05);
  if (ratio < (large ? 3 : 4.5)) poor.push(`${node.textContent.trim().slice(0, 40)} ${ratio.toFixed(2)}`);
}
return poor;
