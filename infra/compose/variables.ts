/** Refuses a variable of a text: what was expected, and what is there. */
export type Refuse = (expected: string, got: string) => Error;

export interface Substitution {
  readonly variables: Readonly<Record<string, string>>;
  readonly refuse: Refuse;
}

/** A use of a variable: its name, and what follows it within the braces. */
export interface Use {
  readonly name: string;
  readonly operator: '' | '-' | ':-' | '?' | ':?' | '+' | ':+';
  /** The text after the operator, in which variables may stand, too. */
  readonly word: string;
}

const name = /[a-z_]\w*/iy;
const braced = /^([a-z_]\w*)(?:(:?[-?+])(.*))?$/is;
const operators = ['', '-', ':-', '?', ':?', '+', ':+'] as const;
/** The most characters of a text in which variables stand: each may double those before it. */
const longestText = 256 * 1024;
/** Far more than any file nests. */
const deepest = 20;

/**
 * Substitutes variables by the rules of the Compose specification: `$NAME`, `${NAME}`, `${NAME:-default}`, `${NAME:?error}`,
 * `${NAME:+other}`, and the same without the colon, for which an empty value counts as one. `$$` is a dollar sign.
 */
export function substitute(text: string, given: Substitution, depth = 0): string {
  let result = '';
  let at = 0;
  for (;;) {
    const dollar = text.indexOf('$', at);
    if (dollar === -1) return result + text.slice(at);
    result += text.slice(at, dollar);
    const { use, end } = useAt(text, dollar, given.refuse);
    result += typeof use === 'string' ? use : textOf(use, given, depth);
    if (result.length > longestText) {
      throw given.refuse(`a text of at most ${longestText} characters`, 'variables that make it longer');
    }
    at = end;
  }
}

/** Returns the variable that a text consists of; null for any other text. */
export function wholeUse(text: string, refuse: Refuse): Use | null {
  if (!text.startsWith('$')) return null;
  const { use, end } = useAt(text, 0, refuse);
  return typeof use === 'string' || end < text.length ? null : use;
}

/** Reads what a dollar sign begins, and where that ends: a variable, or a text. */
function useAt(text: string, dollar: number, refuse: Refuse): { readonly use: Use | string; readonly end: number } {
  const start = dollar + 1;
  if (text[start] === '$') return { use: '$', end: start + 1 };
  name.lastIndex = start;
  const [plain] = name.exec(text) ?? [];
  if (plain !== undefined) return { use: { name: plain, operator: '', word: '' }, end: start + plain.length };
  if (text[start] !== '{') return { use: '$', end: start };
  const close = closingBrace(text, start);
  const [whole, ofBraces = '', sign = '', word = ''] = braced.exec(text.slice(start + 1, close)) ?? [];
  const operator = operators.find((one) => one === sign);
  if (close === -1 || whole === undefined || operator === undefined) {
    throw refuse(`a variable such as \${NAME} or \${NAME:-default}, or $$ for a dollar sign`, text.slice(dollar));
  }
  return { use: { name: ofBraces, operator, word }, end: close + 1 };
}

/** Returns the position of the brace that closes the one at `open`; -1 if none does. */
function closingBrace(text: string, open: number): number {
  let depth = 0;
  for (let at = open; at < text.length; at += 1) {
    if (text[at] === '{') depth += 1;
    if (text[at] === '}') depth -= 1;
    if (depth === 0) return at;
  }
  return -1;
}

function textOf({ name: variable, operator, word }: Use, given: Substitution, depth: number): string {
  const { variables, refuse } = given;
  if (depth > deepest) throw refuse(`variables that are nested at most ${deepest} times`, `$${variable}`);
  const value = Object.hasOwn(variables, variable) ? variables[variable] : undefined;
  const isGiven = value !== undefined && (value !== '' || !operator.startsWith(':'));
  if (operator.endsWith('+')) return isGiven ? substitute(word, given, depth + 1) : '';
  if (isGiven) return value;
  if (operator.endsWith('-')) return substitute(word, given, depth + 1);
  if (operator === '')
    throw refuse('only variables of the harness, or one of the host as a whole value', `$${variable}`);
  throw refuse('a value of a variable that the file requires', `none of ${variable}: ${word}`);
}
