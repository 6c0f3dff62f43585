/** Placeholder. */
export function Memory(_: { readonly rest: string }) {
  return <h1>Memory</h1>
}
