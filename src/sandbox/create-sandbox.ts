/** Creates the sandbox that the settings ask for. It never falls back by itself to a weaker sandbox, or to none. */

import { createBubblewrap } from './bubblewrap/bubblewrap.ts'
import type { Created, Sandbox, SandboxSettings } from './contract.ts'
import { notLinux } from './install.ts'
import { withRepairs } from './left-rights.ts'
import { resolvePlaces } from './protect/places.ts'
import { withoutMounts } from './readable.ts'

/**
 * Never throws because of a missing system feature: `missing` says what to install or change. Only `kind: 'none'` runs commands unconfined.
 */
export async function createSandbox(settings: SandboxSettings): Promise<Created> {
  if (settings.kind === 'none') {
    return {
      ok: true,
      sandbox: withModes({
        name: 'none',
        describe: () => ['none: commands run with all the rights of this user'],
        spawn: (plan) => settings.spawnPlain(withoutMounts(plan)),
        privateViews: async () => ({ ok: false, why: 'without a sandbox nothing separates a command from the workspace' }),
      }),
    }
  }
  if (process.platform !== 'linux') return { ok: false, missing: notLinux }
  const resolved = resolvePlaces(settings)
  if (!resolved.ok) return resolved
  const making = { settings, places: resolved.places }
  const created = await (settings.kind === 'landlock'
    ? (await import('./landlock/landlock.ts')).createLandlock(making)
    : createBubblewrap(making))
  if (!created.ok) return created
  const { workspace } = resolved.places
  const spawn = withRepairs({ workspace, spawn: created.sandbox.spawn, log: settings.log })
  return { ok: true, sandbox: withModes({ ...created.sandbox, spawn }) }
}

/** Names the mode of each command that can write, and refuses a private view where there is none. */
function withModes(sandbox: Sandbox): Sandbox {
  return {
    ...sandbox,
    async spawn(plan) {
      if (plan.readOnly) return sandbox.spawn(plan)
      const views = plan.view === 'private' ? await sandbox.privateViews() : undefined
      if (views?.ok === false) return { ok: false, message: `the command cannot have a private view of the workspace: ${views.why}` }
      const ended = await sandbox.spawn(plan)
      return ended.ok ? { ...ended, mode: ended.view === undefined ? 'direct' : 'transaction' } : ended
    },
  }
}
