/** Text of server-sent events. */
export const dataEvent = (data: unknown): string => `data: ${JSON.stringify(data)}\n\n`;

/** An event of the APIs that name each by its data's `type`. */
export const typedEvent = <Data extends { readonly type: string }>(data: Data): string =>
  `event: ${data.type}\n${dataEvent(data)}`;

/** Ignored by every reader; keeps the connection from looking dead. */
export const comment = (text: string): string => `: ${text}\n\n`;
