/** Finds the end of a JSON object while its text arrives. */
export interface JsonScanner {
  /** Returns the index in `text` after the object's end; null when the object continues. The first text begins with a bracket. */
  push(text: string): number | null;
  /** Whether the text so far ends within a string. */
  isInString(): boolean;
}

export function createJsonScanner(): JsonScanner {
  let depth = 0;
  let inString = false;
  let escaped = false;
  return {
    push(text) {
      for (let at = 0; at < text.length; at += 1) {
        const character = text[at];
        if (inString) {
          if (escaped) escaped = false;
          else if (character === '\\') escaped = true;
          else if (character === '"') inString = false;
        } else if (character === '"') inString = true;
        else if (character === '{' || character === '[') depth += 1;
        else if (character === '}' || character === ']') {
          depth -= 1;
          if (depth <= 0) return at + 1;
        }
      }
      return null;
    },
    isInString: () => inString,
  };
}

/** Whether text that begins a JSON object stops before its end. */
export function endsInside(text: string): boolean {
  const json = text.trim();
  return /^[{[]/.test(json) && createJsonScanner().push(json) === null;
}
