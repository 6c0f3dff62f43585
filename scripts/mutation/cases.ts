/** Replaces `bun:test` in the copy: it collects the tests of a file, so that one process can run them repeatedly. */

type Body = (...args: readonly unknown[]) => unknown
type Hooks = { readonly [when in 'beforeAll' | 'afterAll' | 'beforeEach' | 'afterEach']: Body[] }
type Suite = Hooks & { readonly above: Suite | undefined; begun: boolean }
export type Case = { readonly run: () => Promise<void> }

export type Cases = ReturnType<typeof createCases>

/** `beforeAll` runs once, before the first case of its suite; `afterAll` only at the very end. */
export function createCases() {
  const cases: Case[] = []
  const suites = [suiteIn(undefined)]
  let here = suites[0]
  const hook = (when: keyof Hooks) => (body: Body) => void here?.[when].push(body)
  const test = (_name: string, body: Body) => {
    const suite = here
    cases.push({ run: () => runIn(suite, body) })
  }
  const describe = (_name: string, body: Body) => {
    const above = here
    here = suiteIn(above)
    suites.push(here)
    body()
    here = above
  }
  const [beforeAll, afterAll] = [hook('beforeAll'), hook('afterAll')]
  const [beforeEach, afterEach] = [hook('beforeEach'), hook('afterEach')]
  const finish = () => inOrder(suites.toReversed().flatMap((suite) => (suite.begun ? suite.afterAll : [])))
  return { cases, test: tableOf(test), describe: tableOf(describe), beforeAll, afterAll, beforeEach, afterEach, finish }
}

function suiteIn(above: Suite | undefined): Suite {
  return { above, begun: false, beforeAll: [], afterAll: [], beforeEach: [], afterEach: [] }
}

async function runIn(suite: Suite | undefined, body: Body): Promise<void> {
  const around = chain(suite)
  for (const one of around) await begin(one)
  await inOrder(around.flatMap((one) => one.beforeEach))
  try {
    await body()
  } finally {
    await inOrder(around.toReversed().flatMap((one) => one.afterEach))
  }
}

async function begin(suite: Suite): Promise<void> {
  if (suite.begun) return
  suite.begun = true
  await inOrder(suite.beforeAll)
}

function chain(suite: Suite | undefined): Suite[] {
  return suite === undefined ? [] : [...chain(suite.above), suite]
}

async function inOrder(bodies: readonly Body[]): Promise<void> {
  for (const body of bodies) await body()
}

type Declare = (name: string, body: Body) => void

/** Has the forms `.each` and `.if`; `.concurrent` runs cases in sequence here. */
function tableOf(declare: Declare) {
  const each = (rows: readonly unknown[]) => (name: string, body: Body) => {
    for (const row of rows) declare(name, () => body(...(Array.isArray(row) ? row : [row])))
  }
  const nothing: Declare = () => undefined
  return Object.assign((name: string, body: Body) => declare(name, body), {
    each,
    if: (really: unknown) => (really ? declare : nothing),
    skipIf: (really: unknown) => (really ? nothing : declare),
    concurrent: declare,
  })
}
