/**
 * Returns the source text of a member of a JSON object, since parsing would change `1.0` and numbers beyond 2^53. Expects
 * text that JSON.parse accepts; null when there is no such member. As in JSON.parse, the last of several wins.
 */
export function memberText(json: string, member: string): string | null {
  let found: string | null = null;
  let depth = 0;
  let key: string | null = null;
  let valueStart = -1;
  for (let at = 0; at < json.length; at += 1) {
    const character = json[at];
    if (character === '"') {
      const end = stringEnd(json, at);
      if (depth === 1 && key === null) key = JSON.parse(json.slice(at, end));
      at = end - 1;
    } else if (character === '{' || character === '[') {
      depth += 1;
    } else if (character === ':' && depth === 1 && valueStart < 0) {
      valueStart = at + 1;
    } else if (character === '}' || character === ']' || character === ',') {
      const ends = depth === 1;
      if (character !== ',') depth -= 1;
      if (!ends) continue;
      if (key === member && valueStart >= 0) found = json.slice(valueStart, at).trim();
      key = null;
      valueStart = -1;
    }
  }
  return found;
}

function stringEnd(json: string, start: number): number {
  for (let at = start + 1; at < json.length; at += 1) {
    if (json[at] === '\\') at += 1;
    else if (json[at] === '"') return at + 1;
  }
  return json.length;
}
