/*
 * The words and operators of a shell script. What a here-document or a comment says is no command, and a quoted text is one word.
 */

export interface ShellToken {
  /** The operator, or null for a word; `>` with the file of a redirection, `<<` with the texts of here-documents. */
  readonly operator: string | null;
  /** The word without its quotes. */
  readonly text: string;
  /** The scripts in it: commands between `$(` and `)`, and between backquotes. */
  readonly nested: readonly ShellPart[];
  readonly line: number;
  readonly start: number;
  readonly end: number;
}

/** A script within another one. */
export interface ShellPart {
  readonly script: string;
  /** The number of its first line. */
  readonly line: number;
}

interface Read {
  readonly text: string;
  readonly nested: readonly ShellPart[];
  readonly end: number;
}

const blank = /(?:[ \t\r]|\\\r?\n)+/y;
const comment = /#[^\n]*/y;
const operator = /\n|;;&?|;&?|&&|\|\||\|&|\||&(?!>)|[()]/y;
const hereDocument = /<<(-?)[ \t]*(['"\\]?)([\w.+-]+)['"]?/y;
const redirection = /(?:\d+|&)?(?:>>|>&|>\||<>|<&|<<<|>|<)[ \t]*/y;
/** The characters that end a word outside of quotes. */
const ending = new Set([' ', '\t', '\r', '\n', ';', '&', '|', '(', ')', '<', '>']);

/** Splits a script into words and operators, without its comments. */
export function shellTokens(script: string, firstLine = 1): readonly ShellToken[] {
  const tokens: ShellToken[] = [];
  const documents: { readonly name: string; readonly indented: boolean }[] = [];
  let at = 0;
  const lineAt = lineCounter(script, firstLine);
  const match = (pattern: RegExp): RegExpExecArray | null => {
    pattern.lastIndex = at;
    return pattern.exec(script);
  };
  let line = firstLine;
  const push = (operator: string | null, { text, nested, end }: Read): void => {
    tokens.push({ operator, text, nested, line, start: at, end });
    at = end;
  };
  while (at < script.length) {
    line = lineAt(at);
    const skipped = match(blank) ?? match(comment);
    const document = skipped === null ? match(hereDocument) : null;
    const target = skipped === null && document === null ? match(redirection) : null;
    const found = skipped ?? document ?? target ?? match(operator);
    if (found === null) push(null, readWord(script, at, lineAt));
    else if (found === skipped) at += found[0].length;
    else if (found === document) {
      documents.push({ indented: found[1] === '-', name: found[3] ?? '' });
      at += found[0].length;
    } else if (found === target) {
      // The file is no word of the command, but a substitution in it runs all the same.
      const { nested, end } = readWord(script, at + found[0].length, lineAt);
      push('>', { text: '', nested, end });
    } else if (found[0] === '\n' && documents.length > 0) {
      push('<<', readDocuments(script, at + 1, documents.splice(0), lineAt));
      push('\n', { text: '', nested: [], end: at });
    } else push(found[0], { text: '', nested: [], end: at + found[0].length });
  }
  return tokens;
}

/** Returns the function that numbers the lines of ever later places. */
function lineCounter(script: string, firstLine: number): (at: number) => number {
  let [line, counted] = [firstLine, 0];
  return (at) => {
    for (; counted < at; counted += 1) if (script[counted] === '\n') line += 1;
    return line;
  };
}

function readDocuments(
  script: string,
  from: number,
  documents: readonly { readonly name: string; readonly indented: boolean }[],
  lineAt: (at: number) => number,
): Read {
  const nested: ShellPart[] = [];
  let at = from;
  for (const { name, indented } of documents) {
    const line = lineAt(at);
    const lines: string[] = [];
    while (at < script.length) {
      const end = script.indexOf('\n', at);
      const text = script.slice(at, end === -1 ? script.length : end).replace(/\r$/, '');
      at = end === -1 ? script.length : end + 1;
      if ((indented ? text.replace(/^\t+/, '') : text) === name) break;
      lines.push(text);
    }
    nested.push({ script: lines.join('\n'), line });
  }
  return { text: '', nested, end: at };
}

function readWord(script: string, from: number, lineAt: (at: number) => number): Read {
  const nested: ShellPart[] = [];
  let [text, at, quote] = ['', from, ''];
  while (at < script.length) {
    const char = script[at] ?? '';
    if (char === '\\' && quote !== "'") {
      text += script[at + 1] === '\n' ? '' : (script[at + 1] ?? '');
      at += 2;
    } else if (quote !== "'" && (script.startsWith('$(', at) || char === '`')) {
      const end = char === '`' ? endOfQuote(script, at + 1, '`') : endOfGroup(script, at + 2);
      const start = at + (char === '`' ? 1 : 2);
      nested.push({ script: script.slice(start, end), line: lineAt(at) });
      text += script.slice(at, end + 1);
      at = end + 1;
    } else if (char === quote) {
      quote = '';
      at += 1;
    } else if (quote === '' && (char === "'" || char === '"')) {
      quote = char;
      at += 1;
    } else if (quote === '' && ending.has(char)) break;
    else {
      text += char;
      at += 1;
    }
  }
  return { text, nested, end: at };
}

function endOfQuote(script: string, from: number, quote: string): number {
  for (let at = from; at < script.length; at += 1) {
    if (script[at] === '\\' && quote !== "'") at += 1;
    else if (script[at] === quote) return at;
  }
  return script.length;
}

/** Returns the place of the parenthesis that closes a group, whose content begins at `from`. */
function endOfGroup(script: string, from: number): number {
  let depth = 1;
  for (let at = from; at < script.length; at += 1) {
    const char = script[at] ?? '';
    if (char === '\\') at += 1;
    else if (char === "'" || char === '"') at = endOfQuote(script, at + 1, char);
    else if (char === '(') depth += 1;
    else if (char === ')') {
      depth -= 1;
      if (depth === 0) return at;
    }
  }
  return script.length;
}
