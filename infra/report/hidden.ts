// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * Text from an agent or a test that looks like what it is: control characters, which command a terminal, and those that
 * turn the direction of writing around are shown by their code.
 */
export function showHidden(text: string): string {
  return text.replaceAll(hidden, (character) => `⟨${character.codePointAt(0)?.toString(16).padStart(4, '0')}⟩`);
}
