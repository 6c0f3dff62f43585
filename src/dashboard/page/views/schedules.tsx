/** Placeholder. */
export function Schedules(_: { readonly rest: string }) {
  return <h1>Schedules</h1>
}
