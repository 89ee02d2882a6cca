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
      const begun = started || held !== '' ? text : text.replace(/^[\r\n]+/, '');
      const shown = begun.trimEnd();
      // What is held back is not looked at again: a reply may consist of thousands of blanks.
      if (shown === '') {
        held += begun;
        return '';
      }
      const all = held + shown;
      held = begun.slice(shown.length);
      started = true;
      return all;
    },
    reset() {
      started = false;
      held = '';
    },
  };
}
