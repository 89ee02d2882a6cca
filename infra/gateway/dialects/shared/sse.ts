/** Writes a server-sent event. */
export const dataEvent = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;

/** Writes an event for the APIs that name each event by its data's `type`. */
export const typedEvent = <Data extends { readonly type: string }>(data: Data): string =>
  `event: ${data.type}\n${dataEvent(data)}`;

/** Writes a comment, which every reader ignores; it keeps the connection from looking dead. */
export const comment = (text: string): string => `: ${text}\n\n`;
