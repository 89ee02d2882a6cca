/** The characters of a word that are merged at once. */
const longestWord = 16_384;
/** The character that stands for a blank where a whole text is one word. */
const blank = '\u2581';

/**
 * Has the library encode a very long word in parts. It takes an object and an entry of a queue for each character of a word, of
 * which one word of some megabytes, such as a file without a blank, would use up the heap.
 */
export function limitWords(model: { encode(words: string[]): string[] }): void {
  const encode = model.encode.bind(model);
  model.encode = (words) => encode(words.some(({ length }) => length > longestWord) ? words.flatMap(partsOf) : words);
}

/** Splits a long word, if possible before a blank, where no token would be cut, and never within a character. */
export function partsOf(word: string): string[] {
  const parts: string[] = [];
  for (let at = 0; at < word.length; ) {
    const end = endOfPart(word, at);
    parts.push(word.slice(at, end));
    at = end;
  }
  return parts;
}

function endOfPart(word: string, start: number): number {
  const end = start + longestWord;
  if (end >= word.length) return word.length;
  for (let at = end; at > start + longestWord / 2; at -= 1) {
    if (word[at] === blank && word[at - 1] !== blank) return at;
  }
  const isInCharacter = /[\uDC00-\uDFFF]/.test(word[end] ?? '');
  return isInCharacter ? end - 1 : end;
}
