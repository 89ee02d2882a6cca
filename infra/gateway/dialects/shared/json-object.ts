import { nestsWithin } from '../../../kits/chat-tokens/index.ts';

/** The object that a JSON text says, such as the arguments of a call; null for any other text, and for one too deep to be walked. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isObject(value) && nestsWithin(value) ? value : null;
  } catch {
    return null;
  }
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
