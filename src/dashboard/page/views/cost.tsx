/** Placeholder. */
export function Cost(_: { readonly rest: string }) {
  return <h1>Cost</h1>
}
