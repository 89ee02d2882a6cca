// biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what it matches
const hidden = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/**
 * Replaces hidden characters of a text from an agent or a test by their codes: control characters, which may command a
 * terminal, and characters that reverse the direction of writing.
 */
export function showHidden(text: string): string {
  return text.replaceAll(hidden, (character) => `⟨${character.codePointAt(0)?.toString(16).padStart(4, '0')}⟩`);
}
