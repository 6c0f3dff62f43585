/**
 * Runs in the browser: renders one story and plays it. The bundle gets the text of these methods, so they use nothing but each other and
 * the page.
 */

type Element = {
  readonly nodeType: number
  readonly isConnected: boolean
  readonly childNodes: Iterable<Element>
  readonly textContent: string
  readonly computedRole: string
  readonly computedName: string
  innerHTML: string
  matches(selector: string): boolean
  checkVisibility(options: object): boolean
  getAttribute(name: string): string | null
  querySelectorAll(selector: string): Iterable<Element>
  append(child: unknown): void
}
declare const document: { getElementById(id: string): Element }
declare const requestAnimationFrame: (then: () => void) => void

type Text = string | RegExp
type QueryWords = [wanted: Text, options?: { readonly name?: Text }]
type Matcher = (received: never, ...expected: never[]) => unknown
type Play = (context: object) => unknown
type Story = { readonly args?: object; readonly render?: (args: object) => unknown; readonly play?: Play; readonly component?: unknown }

/** The bundle of one story file: the markup of an html file, its exports, and a renderer for its framework. */
type StoryBundle = {
  readonly html: string
  readonly load: () => Promise<{ readonly [name: string]: Story }>
  readonly renderer?: { readonly h: (component: unknown, args: object) => unknown; readonly mount: (node: unknown, root: Element) => void }
}

/** The page calls `__act` for an event of the user: `at` is the position of the element in `__targets`. */
export type Act = (kind: string, at: number, value: string) => Promise<void>

export const storyPage = {
  fits(text: unknown, wanted: Text): boolean {
    return typeof wanted === 'string' ? this.flat(text) === wanted : wanted.test(this.flat(text))
  },

  flat(text: unknown): string {
    return typeof text === 'string' ? text.replace(/\s+/g, ' ').trim() : ''
  },

  /** Waits until React and Preact have drawn. */
  async frames(): Promise<void> {
    for (let count = 0; count < 2; count += 1) await new Promise<void>((resolve) => requestAnimationFrame(resolve))
  },

  async waitFor<T>(get: () => T): Promise<Awaited<T>> {
    for (const end = Date.now() + 1_000; ; await new Promise((resolve) => setTimeout(resolve, 30))) {
      try {
        return await get()
      } catch (error) {
        if (Date.now() > end) throw error
      }
    }
  },

  isFound(element: Element, by: string, [wanted, { name } = {}]: QueryWords): boolean {
    const own = () => [...element.childNodes].map((node) => (node.nodeType === 3 ? node.textContent : '')).join('')
    if (by === 'Text') return this.fits(own(), wanted)
    if (by === 'TestId') return this.fits(element.getAttribute('data-testid'), wanted)
    if (by === 'Role') return element.computedRole === wanted && (name === undefined || this.fits(element.computedName, name))
    return element.matches('input,select,textarea,[aria-label],[aria-labelledby]') && this.fits(element.computedName, wanted)
  },

  /** `getByRole`, `getAllByRole`, `queryByRole`, `findByRole`, and the same by Text, LabelText and TestId. */
  within(root: Element): object {
    const queries = ['Role', 'Text', 'LabelText', 'TestId'].flatMap((by) => {
      const all = (...asked: QueryWords) => [...root.querySelectorAll('*')].filter((element) => this.isFound(element, by, asked))
      const getAll = (...asked: QueryWords) => {
        const found = all(...asked)
        if (found.length > 0) return found
        throw new Error(`no element by ${by} ${asked[0]}${asked[1]?.name === undefined ? '' : ` with the name ${asked[1].name}`}`)
      }
      const get = (...asked: QueryWords) => {
        const [first, ...more] = getAll(...asked)
        if (more.length === 0) return first
        throw new Error(`${more.length + 1} elements by ${by} ${asked[0]}, not one`)
      }
      const find = (...asked: QueryWords) => this.waitFor(() => get(...asked))
      const query = (...asked: QueryWords) => all(...asked)[0] ?? null
      return Object.entries({ [`getBy${by}`]: get, [`getAllBy${by}`]: getAll, [`queryBy${by}`]: query, [`findBy${by}`]: find })
    })
    return Object.fromEntries(queries)
  },

  same(a: unknown, b: unknown): boolean {
    if (Object.is(a, b)) return true
    if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null || Array.isArray(a) !== Array.isArray(b)) return false
    return [...new Set([...Object.keys(a), ...Object.keys(b)])].every((key) => this.same(Object(a)[key], Object(b)[key]))
  },

  matchers(): { readonly [name: string]: Matcher } {
    return {
      toBe: Object.is,
      toEqual: (a: unknown, b: unknown) => this.same(a, b),
      toContain: (list: string | unknown[], part: never) => list.includes(part),
      toMatch: (text: string, wanted: Text) => new RegExp(wanted).test(text),
      toBeTruthy: (value: unknown) => value,
      toHaveLength: (list: unknown[], length: number) => list.length === length,
      toBeGreaterThan: (a: number, b: number) => a > b,
      toBeInTheDocument: (element: Element | null) => element?.isConnected,
      toBeVisible: (element: Element) => element.checkVisibility({ opacityProperty: true, visibilityProperty: true }),
      toBeDisabled: (element: Element) => element.matches(':disabled'),
      toBeChecked: (element: Element) => element.matches(':checked'),
      toHaveTextContent: ({ textContent }: Element, text: Text) =>
        typeof text === 'string' ? this.flat(textContent).includes(text) : this.fits(textContent, text),
      toHaveValue: ({ value }: { readonly value: unknown }, wanted: unknown) => value === wanted,
      toHaveAttribute: (element: Element, name: string, value = element.getAttribute(name)) =>
        value !== null && element.getAttribute(name) === value,
    }
  },

  shown(value: unknown): string {
    const { nodeType, computedRole, computedName, textContent } = Object(value)
    if (nodeType !== undefined) return `<${computedRole} "${computedName}"> "${this.flat(textContent).slice(0, 200)}"`
    return (value instanceof RegExp ? String(value) : (JSON.stringify(value) ?? String(value))).slice(0, 500)
  },

  expect(received: unknown): object {
    const all = (wanted: boolean) => {
      const entries = Object.entries(this.matchers()).map(([name, matcher]) => {
        const check = (...expected: unknown[]) => {
          if (Boolean(matcher(received as never, ...(expected as never[]))) === wanted) return
          const words = [this.shown(received), wanted ? name : `not ${name}`, expected.map((each) => this.shown(each)).join(', ')]
          throw new Error(`expected ${words.join(' ').trim()}`)
        }
        return [name, check] as const
      })
      return Object.fromEntries(entries)
    }
    return { ...all(true), not: all(false) }
  },

  async rendered({ html, load, renderer }: StoryBundle, name: string, root: Element): Promise<Pick<Story, 'play' | 'args'>> {
    root.innerHTML = html
    const { default: meta = {}, [name]: story = {} } = await load()
    const args = { ...meta.args, ...story.args }
    const component = story.component ?? meta.component
    const own = typeof story === 'function' ? (story as (args: object) => unknown) : undefined
    const render = story.render ?? own ?? meta.render ?? (component ? (given: object) => renderer?.h(component, given) : undefined)
    const node = render?.(args)
    if (typeof node === 'string') root.innerHTML = node
    else if (Object(node).nodeType !== undefined) root.append(node)
    else if (render && renderer === undefined) throw new Error('it needs React or Preact, and neither is in node_modules')
    else if (render) renderer?.mount(node, root)
    await this.frames()
    return { play: story.play ?? meta.play, args }
  },

  start(bundle: StoryBundle): void {
    const { __act: act } = globalThis as unknown as { readonly __act: Act }
    const targets: Element[] = []
    const user = (kind: string) => async (element: Element, value: unknown) => {
      await act(kind, targets.push(element) - 1, String(value ?? ''))
      await this.frames()
    }
    const kinds = ['click', 'dblclick', 'hover', 'type', 'clear', 'selectOptions', 'press']
    const userEvent = Object.fromEntries(kinds.map((kind) => [kind, user(kind)]))
    const [within, expect, waitFor] = [this.within.bind(this), this.expect.bind(this), this.waitFor]
    const run = async (name: string): Promise<string> => {
      const steps: string[] = []
      const step = async (title: string, work: () => unknown) => {
        steps.push(title)
        await work()
        steps.pop()
      }
      try {
        const canvasElement = document.getElementById('root')
        const { play, args } = await this.rendered(bundle, name, canvasElement)
        await play?.({ canvas: within(canvasElement), canvasElement, args, step, expect, userEvent, within, waitFor })
        return ''
      } catch (error) {
        return (
          [...steps, error instanceof Error ? error.message || error.name : String(error)].join(' › ').slice(0, 2_000) || 'it threw nothing'
        )
      }
    }
    const names = async () => {
      const found = Object.keys(await bundle.load()).filter((name) => name !== 'default')
      return found.length === 0 && bundle.html !== '' ? ['page'] : found
    }
    Object.assign(globalThis, { __targets: targets, __stories: { run, names } })
  },
}
