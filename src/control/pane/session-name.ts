/** Reads the name of the tmux session from the environment: empty means that no pane is wanted. */

export const defaultSession = 'clawdie-controlplane'

export type SessionName = { readonly on: true; readonly name: string; readonly changed: boolean } | { readonly on: false }

/** tmux itself replaces "." and ":", which separate windows and panes; so does this, and also what only a shell could want. */
export function sessionName(given: string | undefined): SessionName {
  if (given !== undefined && given.trim() === '') return { on: false }
  const wanted = (given ?? defaultSession).trim()
  const name = wanted
    .replaceAll(/[^A-Za-z0-9_-]/g, '_')
    .replace(/^-/, '_')
    .slice(0, 64)
  return { on: true, name, changed: name !== wanted }
}
