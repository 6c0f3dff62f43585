/** Opens the browser of a conversation, whose requests pass the guarded fetch: each is judged like one of the tool http. */

import type { Browser } from 'playwright-core'
import type { Config } from '../../../config/config.ts'
import { findChromium, openBrowser } from '../../../sandbox/bubblewrap/chromium.ts'
import type { Policy } from '../../../security/policy.ts'
import { judgeHop } from '../../../security/redirect-hop.ts'
import { judgeConnection } from '../../../security/targets/address.ts'
import { browser } from '../../../tools/browser/browser.ts'
import { createPages, type PageFetch, type Pages } from '../../../tools/browser/pages.ts'
import { createGuardedFetch } from '../../../workspace/net/guarded.ts'

type Environment = { readonly [name: string]: string | undefined }

/** Returns the tool where Chromium is found. */
export function browserTools(env: Environment) {
  return findChromium(env) === undefined ? [] : [browser]
}

/** A picture or a script may be longer than a page that a model reads. */
const mostBytes = 16 * 1024 * 1024

type BrowserOptions = { readonly policy: Policy; readonly limits: Config['limits']; readonly env: Environment }

export function openPages({ policy, limits, env }: BrowserOptions) {
  const state: { opening?: Promise<{ readonly browser: Browser; readonly pages: Pages }> | undefined } = {}
  const fetch: PageFetch = (from, { url, ...request }) =>
    createGuardedFetch({
      judgeUrl: (to) => judgeHop({ from, to, policy }),
      judgeAddress: ({ host, ip }) => judgeConnection({ host, ip, allowedDomains: policy.allowedDomains }),
      maxBytes: Math.max(mostBytes, limits.maxResponseBytes),
      binary: true,
      timeoutMs: limits.httpTimeoutS * 1000,
    }).get(url, request)

  async function start() {
    const program = findChromium(env)
    if (program === undefined) throw new Error('Chromium is not installed any more; install the package "chromium", or name it in CHROMIUM')
    const opened = await openBrowser(program)
    opened.once('disconnected', () => {
      state.opening = undefined
    })
    const context = await opened.newContext({ serviceWorkers: 'block', acceptDownloads: false, ignoreHTTPSErrors: false })
    return { browser: opened, pages: createPages(context, fetch) }
  }

  return {
    /** The first call, and the first after a crash, starts Chromium. @throws Error that says why there is none */
    async pages(): Promise<Pages> {
      state.opening ??= start()
      return (await state.opening).pages
    },
    async close(): Promise<void> {
      await (await state.opening?.catch(() => undefined))?.browser.close()
    },
  }
}
