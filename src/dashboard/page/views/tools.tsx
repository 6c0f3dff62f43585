/** Placeholder. */
export function Tools(_: { readonly rest: string }) {
  return <h1>Tools</h1>
}
