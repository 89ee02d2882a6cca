const reasonMark = ' - ';

/**
 * Returns the id in `id - reason`. Parameters may hold brackets, blanks and the mark itself, so an id with parameters ends
 * where its brackets are closed; if they never are, at the first bracket that a reason follows.
 */
export function idBeforeReason(text: string): string {
  const mark = text.indexOf(reasonMark);
  const bracket = text.indexOf('[');
  if (mark === -1) return text;
  if (bracket === -1 || mark < bracket) return text.slice(0, mark);
  let depth = 0;
  for (let index = bracket; index < text.length; index += 1) {
    if (text[index] === '[') depth += 1;
    if (text[index] !== ']') continue;
    depth -= 1;
    if (depth === 0 && endsAt(text, index + 1)) return text.slice(0, index + 1);
  }
  const unbalanced = text.indexOf(`]${reasonMark}`);
  return unbalanced === -1 ? text : text.slice(0, unbalanced + 1);
}

const endsAt = (text: string, index: number): boolean => index === text.length || text.startsWith(reasonMark, index);

/** Returns the id at the start of a text: up to the first blank after its file and outside of its parameters. */
export function nodeAtStart(text: string): string {
  let depth = 0;
  for (let index = Math.max(0, text.indexOf('::')); index < text.length; index += 1) {
    if (text[index] === '[') depth += 1;
    else if (text[index] === ']') depth -= 1;
    else if (text[index] === ' ' && depth <= 0) return text.slice(0, index);
  }
  return text;
}

/**
 * Spells an id as SWE-bench does for pydicom, requests and pylint: a parameter that is an absolute path is reduced to its
 * last part, since the rest differs between machines (swebench/harness/log_parsers/python.py, `parse_log_pytest_options`).
 */
export function withShortPaths(id: string): string {
  const open = id.indexOf('[');
  const close = id.lastIndexOf(']');
  if (open === -1 || close < open) return id;
  const option = id.slice(open + 1, close);
  if (!option.startsWith('/') || option.startsWith('//') || option.includes('*')) return id;
  return `${id.slice(0, open)}[${option.slice(option.lastIndexOf('/'))}]`;
}

/** Spells an id as SWE-bench does for matplotlib, whose newer versions name the members of an enum (`parse_log_matplotlib`). */
export function withMouseButtonNumbers(id: string): string {
  return id.replaceAll('MouseButton.LEFT', '1').replaceAll('MouseButton.RIGHT', '3');
}
