/** One thing a call would touch, judged: forbidden, or rated and resolved into what will be executed. */

import type { Touch } from '../runtime/port.ts'
import type { AlwaysRule } from './always.ts'
import type { PlannedCommand, PlannedPath, PlannedUrl } from './plan.ts'
import type { Policy } from './policy.ts'
import { highest, pathRisk, type Rating } from './risk.ts'
import { createFollower, type Sight } from './targets/link.ts'
import { isUnder, judgePath, placeAsSpelt } from './targets/path.ts'

export type Finding =
  | {
      readonly ok: true
      readonly rating: Rating
      readonly reads: boolean
      readonly harmless?: boolean
      readonly writes: readonly string[]
      readonly path?: PlannedPath
      readonly url?: PlannedUrl
      readonly command?: PlannedCommand
      readonly always?: AlwaysRule
    }
  | { readonly ok: false; readonly rule: string; readonly reason: string }

export type TouchContext = {
  readonly policy: Policy
  readonly resolve: (name: string) => string | undefined
  /** Absent where the disk is not to be looked at: then paths are judged by their text alone. */
  readonly sight?: Sight
}

/** May throw or reject on a broken tool; the gate turns that into a denial. */
export async function judgeTouch(touch: Touch, around: TouchContext): Promise<Finding> {
  if (touch.kind === 'path') return path(touch, around)
  if (touch.kind === 'url') return url(touch, around.policy)
  if (touch.kind === 'command') return command(touch, around)
  throw new TypeError(`the tool touches something of an unknown kind: ${JSON.stringify(touch)}`)
}

function path({ path, access }: Extract<Touch, { kind: 'path' }>, { policy, sight }: TouchContext): Finding {
  if (access !== 'read' && access !== 'write') throw new TypeError(`a path is read or written, not ${JSON.stringify(access)}`)
  const { real } = sight ? { real: sight.real(placeAsSpelt({ path, cwd: policy.workspace, policy })) } : {}
  const verdict = judgePath({ path, access, cwd: policy.workspace, policy })
  if (!verdict.ok) return verdict
  const reads = access === 'read'
  // Refused, if it must be, when the file is opened: only then is it certain what a link leads to.
  const planned = { given: path, path: verdict.path, access, ...(real === undefined || real === verdict.path ? {} : { real }) }
  return { ok: true, rating: pathRisk({ access, inside: verdict.inside }), reads, writes: reads ? [] : [verdict.path], path: planned }
}

async function url(touch: Extract<Touch, { kind: 'url' }>, policy: Policy): Promise<Finding> {
  const { judgeUrl } = await import('./targets/url.ts')
  const verdict = judgeUrl({ url: touch.url, method: touch.method, policy })
  if (!verdict.ok) return verdict
  const { risk, reason, reads, method } = verdict
  return { ok: true, rating: { risk, reason }, reads, writes: [], url: { url: verdict.url, method } }
}

/** The command judge brings a shell parser with it: what judges commands, or addresses, is loaded when there is one. */
async function command(touch: Extract<Touch, { kind: 'command' }>, { policy, resolve, sight }: TouchContext): Promise<Finding> {
  const follower = createFollower(policy, sight)
  const place = follower.judge({ path: touch.cwd ?? '.', access: 'read', cwd: policy.workspace })
  if (!place.ok) return place
  const [{ judgeCommand, isHarmless }, { alwaysRuleFor }] = await Promise.all([import('./command/judge.ts'), import('./always.ts')])
  const verdict = judgeCommand(touch.command, {
    allow: policy.allowCommands,
    forbidden: policy.forbiddenCommands,
    cwd: place.path,
    home: policy.home,
    resolve,
    path: (path, access, cwd) => follower.judge({ path, access, cwd }),
  })
  const { rule, reason, plan } = verdict
  const writes = [...new Set([...verdict.writes, ...follower.written()])]
  const links = follower.links()
  if (verdict.verdict !== 'run' || !plan) return { ok: false, rule, reason }
  const harmless = isHarmless(verdict)
  const shared = {
    reads: harmless && writes.length === 0,
    harmless,
    writes,
    command: { plan, cwd: place.path, ...(links.length > 0 ? { links } : {}) },
  }
  const rating = highest(
    { risk: verdict.risk, reason },
    writes.map((target) => writeRisk(target, policy)),
  )
  return { ok: true, rating, ...shared, always: rating.risk === verdict.risk ? alwaysRuleFor(verdict) : undefined }
}

/** Only where workspace_only is off can a command write outside at all. */
function writeRisk(target: string, { workspace }: Policy): Rating {
  return pathRisk({ access: 'write', inside: isUnder(target, workspace) })
}
