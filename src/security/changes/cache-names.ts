/**
 * Lists the folders that build tools fill for themselves and can fill again. What a sandboxed command writes there stays in a layer that
 * only sandboxed commands see, because the user's own programs would run it: a compiled file decides what a program does.
 */

/** Names of folders; with a "/" the last two parts of a path. They match in this spelling only. */
const always: ReadonlySet<string> = new Set(
  (
    '__pycache__ .pytest_cache .mypy_cache .ruff_cache .pytype .hypothesis .tox .nox .gradle .parcel-cache .turbo .nyc_output ' +
    'node_modules/.cache node_modules/.vite .next/cache .nuxt/cache .angular/cache'
  ).split(' '),
)

/** A folder with such a common name is a cache only beside one of these files. */
const beside: { readonly [name: string]: readonly string[] } = { target: ['Cargo.toml', 'pom.xml', 'build.sbt', 'project.clj'] }

/** `has` tells whether the folder that contains `name` contains another name too. `parent` is the name of that folder. */
export function isCacheName(name: string, parent: string, has: (sibling: string) => boolean): boolean {
  if (always.has(name) || always.has(`${parent}/${name}`)) return true
  return Object.hasOwn(beside, name) && (beside[name] ?? []).some(has)
}
