/** The environment as a layer: BRAIDCLAW_<SECTION>_<KEY>, and a few short names. */

import { type Setting, variableOf } from '../setting.ts'
import { settings } from '../settings.ts'
import type { Where } from '../text/check.ts'
import { nearest } from '../text/suggest.ts'
import { draftLayer, type Layer, put } from './entries.ts'

/** An empty variable counts as not set: `X= braidclaw` must not empty a list of forbidden paths. */
export function environmentLayer(env: Where['env'], where: Where): Layer {
  const draft = draftLayer()
  if (!Object.keys(env).some((name) => name.startsWith('BRAIDCLAW_') && name !== 'BRAIDCLAW_HOME' && name !== 'BRAIDCLAW_LOG')) return draft
  for (const setting of settings) {
    const [variable, other] = [setting.env, variableOf(setting)].filter((name) => name !== undefined && (env[name] ?? '') !== '')
    if (variable === undefined) continue
    if (other !== undefined && env[other] !== env[variable]) draft.notices.push(`${other} is set too and not used: ${variable} decides`)
    put(draft, { setting, raw: fromText(setting, env[variable] ?? ''), where, origin: { source: 'environment', where: variable } })
  }
  draft.notices.push(...strangers(env))
  return draft
}

/** Text as the row wants it; what does not fit stays text, so that the check can say what was found. Lists: `a,b` or a JSON list. */
function fromText(setting: Setting, text: string): unknown {
  switch (setting.type) {
    case 'boolean':
      return text === '1' || text === 'true' ? true : text === '0' || text === 'false' ? false : text
    case 'whole':
    case 'number':
      return /^[+-]?\d[\d_]*(\.\d+)?$/.test(text) ? Number(text.replaceAll('_', '')) : text
    case 'paths':
    case 'words':
      return listFrom(text)
    case 'ports':
      return listFrom(text).map((item) => (typeof item === 'string' && /^\d+$/.test(item) ? Number(item) : item))
    default:
      return text
  }
}

function listFrom(text: string): readonly unknown[] {
  if (text.trimStart().startsWith('[')) {
    try {
      const parsed: unknown = JSON.parse(text)
      if (Array.isArray(parsed)) return parsed
    } catch {
      // Not JSON: then the commas decide, and the check names the odd item.
    }
  }
  return text.split(',').map((item) => item.trim())
}

/** Variables that look like settings of ours and are none: most likely a typing error. */
function strangers(env: Where['env']): readonly string[] {
  const known = settings.flatMap((setting) => [setting.env, variableOf(setting)]).filter((name) => name !== undefined)
  const sections = /^BRAIDCLAW_(SECURITY|LIMITS|PROVIDERS|CHANNELS|MEMORY|RECEIPTS|LOG|WORKSPACE|DEFAULT)_/
  const odd = Object.keys(env).filter((name) => sections.test(name) && !known.includes(name) && env[name] !== undefined)
  return odd.map((name) => {
    const near = nearest(name, known)
    return `${name} is not a setting and was ignored${near === undefined ? '' : `; did you mean ${near}?`}`
  })
}
