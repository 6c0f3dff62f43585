/** Placeholder. */
export function Runs(_: { readonly rest: string }) {
  return <h1>Runs</h1>
}
