import type { Prompt } from '../../../infra/engine/prompt.ts';

export function idsOf({ chunks }: Prompt): number[] {
  const text = Buffer.concat(chunks).toString();
  return text === '' ? [] : text.split(',').map(Number);
}
