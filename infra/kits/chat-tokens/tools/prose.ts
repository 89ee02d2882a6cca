/**
 * Trims the whitespace that a syntax puts around text: line breaks before it, any whitespace after it. Trailing whitespace is
 * held back until more text follows, so that it works on a stream.
 */
export interface Prose {
  push(text: string): string;
  /** Starts a new text. */
  reset(): void;
}

export function createProse(): Prose {
  let started = false;
  let held = '';
  return {
    push(text) {
      const all = held + text;
      const from = started ? all : all.replace(/^[\r\n]+/, '');
      const shown = from.trimEnd();
      held = from.slice(shown.length);
      if (shown !== '') started = true;
      return shown;
    },
    reset() {
      started = false;
      held = '';
    },
  };
}
