/**
 * The token ids of a prompt in the form in which they are sent: as text, separated by commas. Each turn sends the whole
 * prompt of its conversation again, so the written chunks are shared by all turns that continue it, without a copy.
 */
export interface Prompt {
  /** The number of ids. */
  readonly length: number;
  readonly chunks: readonly Buffer[];
}

const empty: Prompt = { length: 0, chunks: [] };

export function promptOf(...parts: readonly (readonly number[])[]): Prompt {
  return extend(empty, ...parts);
}

export function extend(prompt: Prompt, ...parts: readonly (readonly number[])[]): Prompt {
  const texts = parts.filter((ids) => ids.length > 0).map((ids) => ids.join(','));
  if (texts.length === 0) return prompt;
  const added = Buffer.from((prompt.length === 0 ? '' : ',') + texts.join(','), 'latin1');
  const length = parts.reduce((sum, ids) => sum + ids.length, prompt.length);
  return { length, chunks: withLast(prompt.chunks, added) };
}

/** Appends a chunk. Each chunk stays more than twice as long as the next, so there are few and each byte is rarely copied. */
function withLast(chunks: readonly Buffer[], added: Buffer): readonly Buffer[] {
  let from = chunks.length;
  let length = added.length;
  for (let before = chunks[from - 1]; before !== undefined && before.length <= 2 * length; before = chunks[from - 1]) {
    length += before.length;
    from -= 1;
  }
  return [...chunks.slice(0, from), joined([...chunks.slice(from), added], length)];
}

/** Joins buffers into one with memory of its own. A short one from Node's pool would keep all 64 KB of that alive. */
function joined(parts: readonly Buffer[], length: number): Buffer {
  const whole = Buffer.allocUnsafeSlow(length);
  let at = 0;
  for (const part of parts) at += part.copy(whole, at);
  return whole;
}

/** Writes a request's JSON in parts, with the prompt's ids under `key`. The body must have at least one other member. */
export function jsonWithIds(key: string, { chunks }: Prompt, body: object): readonly Buffer[] {
  const before = Buffer.from(`{${JSON.stringify(key)}:[`);
  const after = Buffer.from(`],${JSON.stringify(body).slice(1)}`);
  return [before, ...chunks, after];
}
