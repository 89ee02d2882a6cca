import { Unicode11Addon } from '@xterm/addon-unicode11';
import type { IUnicodeHandling, IUnicodeVersionProvider } from '@xterm/headless';

/** Combining marks that one character may have. xterm.js has no limit: one cell could become as large as the output. */
const mostMarks = 4;

/** Lets a terminal measure characters by Unicode 11, which knows wide emoji, with a limit on the marks that join one. */
export function limitMarks(unicode: IUnicodeHandling): void {
  const register = (provider: IUnicodeVersionProvider): void => {
    unicode.register(limited(provider));
    unicode.activeVersion = provider.version;
  };
  new Unicode11Addon().activate({ unicode: { register } });
}

/**
 * The number by which xterm.js describes a character: bit 0 for one that joins the character before, 2 bits for its
 * width, and a state.
 */
const bits = { joins: 1, width: 1, state: 3 } as const;

/** Unicode 11 needs no state from one character to the next. Here it counts the marks. */
function limited(provider: IUnicodeVersionProvider): IUnicodeVersionProvider {
  return {
    version: provider.version,
    wcwidth: (code) => provider.wcwidth(code),
    charProperties(code, before) {
      const properties = provider.charProperties(code, before);
      if ((properties & bits.joins) === 0) return properties;
      const marks = (before >> bits.state) + 1;
      // One mark too many is a character of its own.
      return marks > mostMarks ? 1 << bits.width : properties | (marks << bits.state);
    },
  };
}
