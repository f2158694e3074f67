// Variants as text: "attention_mma:BLOCK_M=64,BLOCK_N=32". Pure functions.

// {family, parameters: Map(name -> text of the value)}
export function parseVariant(text) {
  const colon = (text ?? "").indexOf(":");
  if (colon < 0) return { family: text ?? "", parameters: new Map() };
  const parameters = new Map();
  for (const part of text.slice(colon + 1).split(",")) {
    const equals = part.indexOf("=");
    if (equals > 0) parameters.set(part.slice(0, equals), part.slice(equals + 1));
  }
  return { family: text.slice(0, colon), parameters };
}

// What tells two variants apart: "BLOCK_M 64 → 128, WARPS 4 → 8"; of two families both names.
export function variantChange(from, to) {
  const [a, b] = [parseVariant(from), parseVariant(to)];
  if (a.family !== b.family) return `${a.family || "none"} → ${b.family || "none"}`;
  const changes = [];
  for (const [name, value] of b.parameters) {
    const before = a.parameters.get(name);
    if (before !== value) changes.push(`${name} ${before ?? "unset"} → ${value}`);
  }
  return changes.length ? changes.join(", ") : "unchanged";
}

// The trial's parameters as numbers: {BLOCK_M: 64, ...}. Protobuf's JSON leaves a value of 0 out.
export function parametersOf(variant) {
  const values = {};
  if (variant?.parameters?.length) {
    for (const { name, value } of variant.parameters) values[name] = Number(value ?? 0);
  } else {
    for (const [name, value] of parseVariant(variant?.text).parameters) values[name] = Number(value);
  }
  return values;
}

export function variantText(variant) {
  if (!variant) return "";
  if (variant.text) return variant.text;
  const parameters = (variant.parameters ?? []).map(({ name, value }) => `${name}=${value ?? 0}`);
  return `${variant.family ?? ""}:${parameters.join(",")}`;
}
