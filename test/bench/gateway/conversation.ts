/**
 * The requests of one client: a history of a given size, which each turn extends by the last reply and a new message.
 */
export interface Conversation {
  /** Body of the next request. */
  next(stream: boolean): string;
}

export const replyText = 'All done.';
/** Approximate size of a tool's result. */
const addedBytes = 300;
/** Approximate size that a turn adds to the body of the next request. */
export const turnBytes = addedBytes + 100;
const words = 'the file has a function that returns the sum of its two arguments and a test that says so '.repeat(8);

export function createConversation(historyBytes: number): Conversation {
  const messages = [message('system', 'You repair programs.')];
  for (let bytes = 0; bytes < historyBytes; bytes += 2 * addedBytes) {
    messages.push(message('user', words.slice(0, addedBytes)), message('assistant', words.slice(0, addedBytes)));
  }
  // The history stays text, so that the client costs little: the gateway is measured.
  let history = messages.join(',');
  let turn = 0;
  return {
    next(stream) {
      const before = turn === 0 ? '' : `,${message('assistant', replyText)}`;
      turn += 1;
      history += `${before},${message('user', `${turn}: ${words.slice(0, addedBytes)}`)}`;
      return `{"model":"policy","stream":${stream},"messages":[${history}]}`;
    },
  };
}

const message = (role: string, content: string): string => JSON.stringify({ role, content });
