import { showHidden } from './hidden.ts';

/** HTML that is known to be safe. Everything else that is put into a template is text, and escaped. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

export type Content = Markup | string | number | null | readonly Content[];

/** `html\`<p>${hostile}</p>\``: values are escaped unless they are Markup themselves. */
export function html(parts: TemplateStringsArray, ...values: readonly Content[]): Markup {
  return new Markup(parts.reduce((text, part, index) => text + render(values[index - 1] ?? null) + part));
}

function render(value: Content): string {
  if (value === null) return '';
  if (value instanceof Markup) return value.text;
  return typeof value === 'object' ? value.map(render).join('') : escapeText(String(value));
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Text that can't become markup, and that shows what it holds. */
export function escapeText(text: string): string {
  return showHidden(text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character));
}
