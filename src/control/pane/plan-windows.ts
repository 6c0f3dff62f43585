/** Plans what has to change so that each agent has one window: a pure function of the agents and of the windows that are there. */

/** `agent` is empty for a window that is not ours. */
export type PaneWindow = { readonly id: string; readonly agent: string; readonly log: string; readonly dead: boolean }

/** `log` identifies the file that the window follows. */
export type WantedWindow = { readonly agent: string; readonly log: string; readonly path: string }

export type PaneStep =
  | { readonly do: 'create'; readonly window: WantedWindow }
  /** The window stays where it is, with its number, and follows this log. */
  | { readonly do: 'respawn'; readonly id: string; readonly window: WantedWindow }
  | { readonly do: 'close'; readonly id: string }

/** Windows that are not ours are never touched; a window of ours whose follower ended, or follows another file, is used again. */
export function planWindows(wanted: readonly WantedWindow[], present: readonly PaneWindow[]): readonly PaneStep[] {
  const ours = present.filter(({ agent }) => agent !== '')
  const first = new Map(ours.toReversed().map((window) => [window.agent, window]))
  const names = new Set(wanted.map(({ agent }) => agent))
  const surplus = ours.filter((window) => !names.has(window.agent) || first.get(window.agent) !== window)
  return [
    ...wanted.flatMap((window) => stepFor(window, first.get(window.agent))),
    ...surplus.map(({ id }): PaneStep => ({ do: 'close', id })),
  ]
}

function stepFor(window: WantedWindow, found: PaneWindow | undefined): PaneStep[] {
  if (!found) return [{ do: 'create', window }]
  return found.dead || found.log !== window.log ? [{ do: 'respawn', id: found.id, window }] : []
}
