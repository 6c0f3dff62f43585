/** Keeps the open pages of a conversation, and answers every request of theirs by the guarded fetch: Chromium has no network of its own. */

import type { BrowserContext, Page as ChromiumPage, Locator, Request, Route } from 'playwright-core'
import { atEnd, errorText } from '../../kit/errors.ts'
import { quote } from '../../kit/text.ts'
import type { FileRefusal } from '../../workspace/contract.ts'
import type { WebPage } from '../builtin/http.ts'

/** A request of a page. `body` of the answer has one character for each byte. */
export type PageRequest = {
  readonly url: string
  readonly method: string
  readonly headers: { readonly [name: string]: string }
  readonly body?: string | undefined
  /** A navigation gets a redirect as an answer; every other request follows it. */
  readonly follow: boolean
  readonly signal: AbortSignal
}

/** Makes a request for a page whose address was judged; refuses it where the gate would have asked anew. Never rejects. */
export type PageFetch = (from: { readonly url: string; readonly method: string }, request: PageRequest) => Promise<WebPage | FileRefusal>

export type Pages = {
  /** @throws Error when the page cannot be opened */
  open(url: string, signal: AbortSignal): Promise<Page>
  /** @returns why there is no such page */
  find(name: string): Page | string
}

export type Page = {
  snapshot(): Promise<{ readonly name: string; readonly title: string; readonly url: string; readonly tree: string }>
  /** Returns what was kept from the page since the last call, one line each. */
  notes(): readonly string[]
  /** With `sends` the page may send to its own host. */
  click(ref: string, options: { readonly signal: AbortSignal; readonly sends: boolean }): Promise<void>
  type(ref: string, text: string, signal: AbortSignal): Promise<void>
  select(ref: string, option: string, signal: AbortSignal): Promise<void>
  wait(text: string, signal: AbortSignal): Promise<void>
  /** Clicks, and returns the file that this leads to, or why there is none. */
  download(ref: string, signal: AbortSignal): Promise<Uint8Array | string>
  screenshot(): Promise<Uint8Array>
  close(): Promise<string>
}

const mostPages = 5

/** How long one action may take, and how long a page may go on loading after it, in milliseconds. */
const actionMs = 15_000
const settleMs = 5_000

const mostNotes = 10
const mostRedirects = 10

export function createPages(context: BrowserContext, fetch: PageFetch): Pages {
  const open = new Map<string, Page & { readonly origin: () => string }>()
  let opened = 0

  return {
    async open(url, signal) {
      if (open.size >= mostPages) throw new Error(`${mostPages} pages are open: close one first (${[...open.keys()].join(', ')})`)
      opened += 1
      const id = `p${opened}`
      const page = await createPage({ context, id, fetch, removed: () => open.delete(id) }, { url, signal })
      open.set(id, page)
      return page
    },
    find(name) {
      const [id = ''] = name.split('@')
      const page = open.get(id)
      if (page === undefined) return `no page ${quote(name)} is open; open one with action "open"`
      const current = `${id}@${page.origin()}`
      return current === name ? page : `page ${quote(id)} is now at another site: its name is ${quote(current)}`
    },
  }
}

const aFrameLater = 'new Promise((resolve) => requestAnimationFrame(() => setTimeout(() => resolve(true), 50)))'

type Opening = { readonly context: BrowserContext; readonly id: string; readonly fetch: PageFetch; readonly removed: () => void }

/** The request that the gate judged, which is all that a page may do at present; the signal ends the action. */
type Permit = { readonly url: string; readonly method: string; readonly signal: AbortSignal }

type PageState = {
  permit: Permit
  notes: string[]
  /** Each resolves when a step of a navigation is done that the action began; they never reject. */
  waits: Promise<unknown>[]
  redirects: number
  /** Why the last navigation of the action was refused. */
  refusal?: string | undefined
  wantsFile: boolean
  file?: Uint8Array | undefined
}

/** The facts of a page that its requests and its actions share. */
type PageFacts = {
  readonly chromium: ChromiumPage
  readonly state: PageState
  readonly fetch: PageFetch
  readonly origin: () => string
  readonly note: (line: string) => void
}

async function createPage({ context, id, fetch, removed }: Opening, first: { readonly url: string; readonly signal: AbortSignal }) {
  const chromium = await context.newPage()
  const state: PageState = { permit: { ...first, method: 'GET' }, notes: [], waits: [], redirects: 0, wantsFile: false }
  const note = (line: string) => void (state.notes.length < mostNotes && !state.notes.includes(line) && state.notes.push(line))
  const origin = () => URL.parse(chromium.url())?.origin ?? 'null'
  const facts = { chromium, state, fetch, origin, note }
  chromium.on('dialog', (dialog) => {
    note(`the page said ${quote(dialog.message().slice(0, 200))}, and it was dismissed`)
    void dialog.dismiss().catch(() => {})
  })
  chromium.on('popup', (popup) => {
    note(`the page opened a window with ${quote(popup.url())}, which was closed: open it with action "open"`)
    void popup.close().catch(() => {})
  })
  chromium.on('close', removed)
  const answer = createAnswers(facts)
  await chromium.route('**/*', async (route) => {
    const answering = answer(route).catch(() => route.abort().catch(() => {}))
    if (isPage(route.request())) state.waits.push(answering)
    await answering
  })
  const page = createActions(facts, id)
  try {
    await during(facts, state.permit, () => chromium.goto(first.url, { timeout: actionMs, waitUntil: 'domcontentloaded' }))
    if (state.refusal !== undefined) throw new Error(state.refusal)
    return page
  } catch (error) {
    const notes = page.notes()
    await chromium.close().catch(() => {})
    throw new Error(notes.length > 0 ? notes.join(' ') : errorText(error).split('\n')[0])
  }
}

function isPage(request: Request): boolean {
  return request.isNavigationRequest() && request.frame() === request.frame().page().mainFrame()
}

/** Returns the function that answers one request of the page. */
function createAnswers({ chromium, state, fetch, origin, note }: PageFacts): (route: Route) => Promise<void> {
  const isMain = (frame: unknown) => frame === chromium.mainFrame()

  /** A refused page leaves the one that is there. */
  async function refuse(route: Route, why: string): Promise<void> {
    const leads = isPage(route.request())
    note(why.slice(0, 400))
    if (leads) state.refusal = why
    await route.abort(leads ? 'aborted' : 'blockedbyclient')
  }

  async function takeFile(route: Route, { headers, bytes }: WebPage, body: Uint8Array): Promise<void> {
    const type = headers['content-type'] ?? 'of no type'
    if (state.wantsFile) state.file = body
    else note(`${route.request().url()} is a file (${type}, ${bytes} bytes): action "download" writes it`)
    await route.abort('aborted')
  }

  /** The browser asks for the new address by a request of its own, which is judged like every other. */
  async function redirect(route: Route, to: URL | null, headers: WebPage['headers']): Promise<void> {
    state.redirects += 1
    if (to === null || state.redirects > mostRedirects)
      return refuse(route, `${route.request().url()} redirects ${to ? 'too often' : 'to nothing'}`)
    state.waits.push(chromium.waitForEvent('request', { predicate: isPage, timeout: settleMs }).catch(() => {}))
    const cookies: { [name: string]: string } = headers['set-cookie'] ? { 'set-cookie': headers['set-cookie'] } : {}
    const body = `<meta http-equiv="refresh" content="0;url=${to.href.replaceAll('&', '&amp;').replaceAll('"', '&quot;')}">`
    await route.fulfill({ status: 200, headers: { 'content-type': 'text/html', ...cookies }, body })
  }

  return async (route) => {
    const request = route.request()
    const { permit } = state
    const leads = isPage(request)
    const reads = request.method() === 'GET' || request.method() === 'HEAD'
    if (!reads && permit.method !== 'POST')
      return refuse(route, `${request.method()} ${request.url()} was kept back: only action "submit" sends`)
    const from = { url: reads ? permit.url : `${origin()}/`, method: reads ? 'GET' : permit.method }
    const reply = await fetch(from, { ...(await requestOf(request)), follow: !leads, signal: permit.signal })
    if (!reply.ok) return refuse(route, `${request.url()}: ${reply.message}`)
    if (reply.truncated) return refuse(route, `${request.url()} is longer than ${reply.bytes} bytes, and was not loaded`)
    const body = Buffer.from(reply.body, 'latin1')
    const { location } = reply.headers
    if (leads && reply.status >= 300 && reply.status < 400 && location !== undefined)
      return redirect(route, URL.parse(location, reply.url), reply.headers)
    if (leads && isFile(reply)) return takeFile(route, reply, body)
    if (leads) state.waits.push(chromium.waitForEvent('framenavigated', { predicate: isMain, timeout: settleMs }).catch(() => {}))
    await route.fulfill({ status: reply.status, headers: passed(reply.headers), body })
  }
}

/** Runs one action under what the gate judged, and waits until the page is quiet. An abort closes the page. */
async function during({ chromium, state, origin }: PageFacts, permit: Permit, act: () => Promise<unknown>): Promise<void> {
  const stop = () => void chromium.close().catch(() => {})
  permit.signal.addEventListener('abort', stop, { once: true })
  Object.assign(state, { permit, waits: [], redirects: 0, refusal: undefined })
  using _end = atEnd(() => {
    permit.signal.removeEventListener('abort', stop)
    state.permit = { ...permit, url: `${origin()}/`, method: 'GET' }
  })
  await act()
  // A click leads somewhere else a moment later: the frame after it has begun to.
  await chromium.waitForFunction(aFrameLater, undefined, { timeout: settleMs }).catch(() => {})
  for (let at = 0; at < state.waits.length; at += 1) await state.waits[at]
  await chromium.waitForLoadState('load', { timeout: settleMs }).catch(() => {})
}

function createActions(facts: PageFacts, id: string) {
  const { chromium, state, origin } = facts
  const timeout = { timeout: actionMs }
  const reading = (signal: AbortSignal): Permit => ({ url: `${origin()}/`, method: 'GET', signal })

  async function on(ref: string, permit: Permit, act: (element: Locator) => Promise<unknown>): Promise<void> {
    const element = chromium.locator(`aria-ref=${ref}`)
    if (!/^[\w-]{1,40}$/.test(ref) || (await element.count()) === 0)
      throw new Error(`no element ${quote(ref)} is on the page now; take a snapshot`)
    await during(facts, permit, () => act(element))
  }

  return {
    origin,
    async snapshot() {
      const tree = await chromium.ariaSnapshot({ mode: 'ai', ...timeout })
      return { name: `${id}@${origin()}`, title: await chromium.title(), url: chromium.url(), tree }
    },
    notes: () => state.notes.splice(0).map((line) => `[${line}]`),
    click: (ref: string, { signal, sends }: { readonly signal: AbortSignal; readonly sends: boolean }) =>
      on(ref, sends ? { ...reading(signal), method: 'POST' } : reading(signal), (element) => element.click(timeout)),
    type: (ref: string, text: string, signal: AbortSignal) => on(ref, reading(signal), (element) => element.fill(text, timeout)),
    select: (ref: string, option: string, signal: AbortSignal) =>
      on(ref, reading(signal), (element) => element.selectOption(option, timeout)),
    wait: (text: string, signal: AbortSignal) => {
      const found = chromium.getByText(text).first()
      return during(facts, reading(signal), () => found.waitFor({ state: 'visible', ...timeout }))
    },
    async download(ref: string, signal: AbortSignal) {
      state.wantsFile = true
      using _end = atEnd(() => Object.assign(state, { wantsFile: false, file: undefined }))
      await on(ref, reading(signal), (element) => element.click(timeout))
      return state.file ?? 'the element led to no file'
    },
    screenshot: () => chromium.screenshot({ ...timeout, animations: 'disabled' }),
    async close() {
      await chromium.close()
      return `page ${id} is closed`
    },
  }
}

async function requestOf(request: Request) {
  const headers = await request.allHeaders()
  const names = Object.keys(headers).filter((name) => !name.startsWith(':'))
  return {
    url: request.url().split('#')[0] ?? '',
    method: request.method(),
    headers: { ...Object.fromEntries(names.map((name) => [name, headers[name] ?? ''])), 'accept-encoding': 'gzip, br' },
    body: request.postData() ?? undefined,
  }
}

/** These belong to the connection that the fetch had. */
const connectionHeaders = /^(content-encoding|content-length|transfer-encoding|connection|keep-alive|alt-svc|strict-transport-security)$/

function passed(headers: WebPage['headers']): { [name: string]: string } {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !connectionHeaders.test(name)))
}

const readable = /^(text\/|image\/|application\/(xhtml\+xml|xml|json|pdf)\b)/i

function isFile({ headers }: WebPage): boolean {
  const type = headers['content-type'] ?? 'text/html'
  return /^\s*attachment/i.test(headers['content-disposition'] ?? '') || !readable.test(type) || /pdf/i.test(type)
}
