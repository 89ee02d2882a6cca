/** Address, account and limits of a server with E2B's API. */
export interface E2bSettings {
  /** The address of the API; null: E2B's own cloud. */
  readonly url: string | null;
  /** The address that passes requests on to sandboxes; null: derived from the API's. */
  readonly sandboxUrl: string | null;
  /** Reads the API key, which is a secret. */
  readonly apiKey: () => Promise<string>;
  /** The operator's file with the templates of images. */
  readonly templates: string;
  /** The longest time that the server lets a sandbox live. */
  readonly longestMs: number;
  /** The most sandboxes that this host creates at once. */
  readonly creates: number;
}
