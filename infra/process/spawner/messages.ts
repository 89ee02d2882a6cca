import type { CollectedCommand, EndedCommand, Program } from './spawner.ts';

// The messages between a process and its helper. Each command has a number, and one reply.

export type HelperRequest =
  | { readonly id: number; readonly start: CollectedCommand }
  | { readonly id: number; readonly launch: Program }
  | { readonly id: number; readonly kill: true };

export type HelperReply =
  | { readonly id: number; readonly ended: EndedCommand }
  | { readonly id: number; readonly launched: true }
  | { readonly id: number; readonly failed: SentError };

/** An error as it travels: structured clones of errors lose their code. */
export interface SentError {
  readonly message: string;
  readonly code?: string;
}

export function toSent(error: unknown): SentError {
  if (!(error instanceof Error)) return { message: String(error) };
  const code = 'code' in error && typeof error.code === 'string' ? { code: error.code } : {};
  return { message: error.message, ...code };
}

export const fromSent = ({ message, ...rest }: SentError): Error => Object.assign(new Error(message), rest);
