/** Placeholder. */
export function Proof(_: { readonly rest: string }) {
  return <h1>Proof</h1>
}
