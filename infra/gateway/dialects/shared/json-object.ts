import { isRecord } from '../../../is-record.ts';
import { nestsWithin } from '../../../kits/chat-tokens/index.ts';

/** Parses the JSON text of an object, such as a call's arguments; null for any other text, and for one that is nested too deep. */
export function jsonObject(text: string): Readonly<Record<string, unknown>> | null {
  try {
    const value: unknown = JSON.parse(text);
    return isRecord(value) && nestsWithin(value) ? value : null;
  } catch {
    return null;
  }
}
