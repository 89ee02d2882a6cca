const width = 118;

/** Joins paragraphs, lists and headings with a blank line between two of them. */
export const join = (...blocks: readonly string[]): string =>
  `${blocks.filter((block) => block !== '').join('\n\n')}\n`;

/** Wraps a paragraph between words; a code span stays on one line. */
export function paragraph(text: string, indent = ''): string {
  const lines: string[] = [];
  let line = indent;
  for (const word of text.match(/(?:`[^`]*`|[^\s`])+/g) ?? []) {
    const longer = line.trim() === '' ? `${line}${word}` : `${line} ${word}`;
    if (longer.length <= width || line.trim() === '') line = longer;
    else {
      lines.push(line);
      line = `${indent}${word}`;
    }
  }
  return [...lines, line].join('\n');
}

/** Returns a list entry: a name, its facts in parentheses, and a description on the lines below. */
export function entry(name: string, facts: readonly string[], description: string): string {
  const head = `- **${code(name)}**${facts.length > 0 ? ` (${facts.join('; ')})` : ''}`;
  return description === '' ? head : `${head}\n${paragraph(sentence(plain(description)), '  ')}`;
}

export const code = (text: string): string => `\`${text}\``;

/** Returns a table row by row; a cell may hold Markdown. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const line = (cells: readonly string[]): string =>
    `| ${cells.map((cell) => cell.replaceAll('|', '\\|')).join(' | ')} |`;
  return [line(head), `|${head.map(() => '---|').join('')}`, ...rows.map(line)].join('\n');
}

/** Escapes what Vue would read as an element, outside of code spans. */
export const plain = (text: string): string =>
  text
    .split(/(`[^`]*`)/)
    .map((part) => (part.startsWith('`') ? part : part.replaceAll('<', '&lt;')))
    .join('');

/** Returns the text with a capital letter at its start and a full stop at its end. */
export function sentence(text: string): string {
  const capital = /^[a-z]+[ ,]/.test(text) ? `${text[0]?.toUpperCase()}${text.slice(1)}` : text;
  return /[.:!?]$/.test(capital) ? capital : `${capital}.`;
}
