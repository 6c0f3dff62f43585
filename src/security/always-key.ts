/** How an "always allow" rule is stored. What may become one stands in always.ts, with the tables that only commands need. */

/** `subcommand` is empty for tools that have none. */
export type AlwaysRule = { readonly executable: string; readonly subcommand: string }

/** One line to store, list and revoke a rule by; neither part can hold a newline or be mistaken for the other. */
export function alwaysKey({ executable, subcommand }: AlwaysRule): string {
  return JSON.stringify(subcommand === '' ? [executable] : [executable, subcommand])
}
