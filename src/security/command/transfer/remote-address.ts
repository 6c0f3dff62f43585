/** Reads the address of a git remote, and judges its host by the rules for every other request. */

import { quote } from '../../../kit/text.ts'
import type { Policy } from '../../policy.ts'
import { type Refusal, refuse } from '../../rules.ts'
import { isListedAddress } from '../../targets/address.ts'
import { isAllowed, judgeUrl } from '../../targets/url.ts'
import type { GitSetting, RemoteAddress } from './transfer.ts'

/** @returns undefined for anything else, such as a path */
export function parseRemote(url: string): RemoteAddress | undefined {
  if (/[\s\p{Cc}\\]/u.test(url)) return
  const web = /^(https?):\/\/(?:[^/?#@]*@)?(\[[\da-f:.]+\]|\w[\w.-]*)(?::(\d{1,5}))?(\/[^?#]*)$/i.exec(url)
  if (web) {
    const [, scheme = '', host = '', port, path = ''] = web
    const protocol = scheme.toLowerCase() === 'http' ? 'http' : 'https'
    const at = port === undefined ? (protocol === 'http' ? 80 : 443) : Number(port)
    const shown = `${protocol}://${host.toLowerCase()}${port === undefined ? '' : `:${port}`}${path}`
    return { url, protocol, host: host.replace(/^\[|\]$/g, '').toLowerCase(), port: at, shown }
  }
  const ssh =
    /^ssh:\/\/(?:[\w.+][\w.+-]*@)?(\w[\w.-]*)(?::(\d{1,5}))?\/\S+$/.exec(url) ??
    /^(?:[\w.+][\w.+-]*@)?(\w[\w.-]*):()(?!:|\/\/)\S+$/.exec(url)
  if (ssh) return { url, protocol: 'ssh', host: (ssh[1] ?? '').toLowerCase(), port: Number(ssh[2] || 22), shown: url }
}

/**
 * Applies the first or the longest `insteadOf`, as git does.
 * @param kinds tried in this order; one that matches ends the search
 */
export function rewriteUrl(url: string, settings: readonly GitSetting[], kinds: readonly ('insteadof' | 'pushinsteadof')[]): string {
  for (const kind of kinds) {
    const rules = settings.flatMap(({ key, value = '' }) => {
      const base = key.startsWith('url.') && key.endsWith(`.${kind}`) ? key.slice(4, -kind.length - 1) : undefined
      return base !== undefined && value !== '' && url.startsWith(value) ? [{ base, value }] : []
    })
    const [longest] = rules.toSorted((a, b) => b.value.length - a.value.length)
    if (longest) return longest.base + url.slice(longest.value.length)
  }
  return url
}

type Asked = {
  readonly address: RemoteAddress
  readonly sends: boolean
  readonly policy: Pick<Policy, 'allowedDomains' | 'allowedPorts'>
}

/** A name of the local network counts only if allowed_domains lists it; so does plain http, and that only for an address. */
export function judgeRemote({ address, sends, policy }: Asked): { readonly ok: true; readonly listed: boolean } | Refusal {
  const { protocol, host, port, shown } = address
  if (protocol === 'http' && !isListedAddress(host, policy.allowedDomains))
    return refuse('git.remote', `${quote(shown)} is plain http, which anybody on the way can change; use https or ssh`)
  const ownPort = protocol === 'ssh' && port === 22
  const at = `${protocol === 'http' ? 'http' : 'https'}://${host.includes(':') ? `[${host}]` : host}${ownPort ? '' : `:${port}`}/`
  const verdict = judgeUrl({ url: at, method: sends ? 'POST' : 'GET', policy })
  if (verdict.ok) return { ok: true, listed: verdict.allowed }
  if (verdict.rule === 'url.local_name' && isAllowed(host, policy.allowedDomains)) return { ok: true, listed: true }
  return { ...verdict, reason: `${verdict.reason} (the remote ${quote(shown)})` }
}
