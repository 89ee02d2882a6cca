import { showHidden } from './hidden-characters.ts';

const isMarkup = Symbol('markup');

/** HTML that is known to be safe. Only `html` and `trustedHtml` create it. */
export interface Markup {
  readonly text: string;
  readonly [isMarkup]: true;
}

export type Content = Markup | string | number | null | readonly Content[];

/** A template tag for HTML. It escapes every value except Markup, and omits null. */
export function html(parts: TemplateStringsArray, ...values: readonly Content[]): Markup {
  return trustedHtml(parts.reduce((text, part, index) => text + render(values[index - 1] ?? null) + part));
}

/** Marks a text as safe HTML without escaping it. Never call it with text from an agent, a task or a test. */
export const trustedHtml = (text: string): Markup => ({ text, [isMarkup]: true });

function render(value: Content): string {
  if (value === null) return '';
  if (typeof value !== 'object') return escapeText(String(value));
  return isMarkup in value ? value.text : value.map(render).join('');
}

const entities: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};

/** Escapes a text so that it cannot become markup, and shows its hidden characters. */
function escapeText(text: string): string {
  return showHidden(text.replaceAll(/[&<>"']/g, (character) => entities[character] ?? character));
}
