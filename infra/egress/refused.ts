/** The decisions on a connection. */
export const decisions = [
  'allowed',
  'bad-request',
  'host-refused',
  'port-refused',
  'address-refused',
  'server-name',
  'name-not-found',
  'unreachable',
  'limit',
] as const;
export type EgressDecision = (typeof decisions)[number];
export type Refusal = Exclude<EgressDecision, 'allowed'>;

/** The reasons to refuse a connection, with the status of the reply. */
export const refusals = {
  'bad-request': { status: 400, text: 'the request is no valid one for a proxy' },
  'host-refused': { status: 403, text: "the task's network policy does not have this host" },
  'port-refused': { status: 403, text: "the task's network policy does not have this port" },
  'address-refused': { status: 403, text: 'the host has an address that is not public, which no sandbox reaches' },
  'server-name': { status: 403, text: 'the connection is not TLS for the host that was asked for' },
  'name-not-found': { status: 502, text: 'the name of the host cannot be resolved' },
  unreachable: { status: 502, text: 'the host does not answer' },
  limit: { status: 429, text: 'this sandbox has used up its network' },
} as const satisfies Readonly<Record<Refusal, { readonly status: number; readonly text: string }>>;

/** A connection that the proxy does not make. Its text is for the sandbox: it names no address. */
export class EgressRefusedError extends Error {
  readonly refusal: Refusal;
  readonly status: number;

  constructor(refusal: Refusal, detail?: string) {
    const { status, text } = refusals[refusal];
    super(detail === undefined ? text : `${text}: ${detail}`);
    this.name = 'EgressRefusedError';
    this.refusal = refusal;
    this.status = status;
  }
}
