import { describe, expect, test } from 'bun:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { stripVTControlCharacters } from 'node:util'
import type { Nest } from '../support/cli.ts'
import { gateway } from '../support/gateway.ts'
import { needs } from '../support/needs.ts'
import { call, home, turn } from '../support/turns.ts'
import type { Mark } from './score.ts'

const bwrap = needs('bwrap')
const run = (command: string) => call('shell', { command })
const write = (path: string, content = 'x\n') => call('file_write', { path, content })
const auto = ['--approve-all-medium', '--autonomy', 'full']

type Told = {
  readonly exitCode: number
  readonly ending: string
  readonly result: string
  readonly proof?: readonly (Mark & { receipt?: string })[]
}

async function told(at: Nest, responses: readonly object[], args: readonly string[] = []): Promise<Told> {
  return JSON.parse((await turn(at, responses, [...auto, '--json', ...args])).stdout)
}

const states = ({ proof = [] }: Pick<Told, 'proof'>) => proof.map(({ kind, state }) => `${kind} ${state}`)

function project(): Nest {
  const at = home()
  at.file('good/test.sh', 'echo $$ > good/out.log\nexit 0\n')
  at.file('bad/test.sh', 'echo all tests pass\nexit 1\n')
  return at
}

describe.if(bwrap)('the claims of an answer', () => {
  test('are bound to the receipt of the call that decides', async () => {
    using at = project()
    const done = await told(at, [run('sh bad/test.sh'), { text: 'All tests pass. I created `src/b.ts`.' }])
    expect(done.proof).toMatchObject([
      {
        kind: 'tests',
        state: 'contradicted',
        why: 'the last run of `sh bad/test.sh` exited 1',
        receipt: expect.stringContaining('receipt-'),
      },
      { kind: 'file', state: 'contradicted', why: 'nothing in this turn changed src/b.ts' },
    ])
    expect([done.exitCode, done.ending]).toEqual([0, 'answered'])
    const { stdout } = await at.run(['run', 'show', 'last'])
    expect(stdout).toContain('contradicted: "All tests pass": the last run of `sh bad/test.sh` exited 1\n')
    expect(states(JSON.parse((await at.run(['run', 'show', 'last', '--json'])).stdout))).toEqual([
      'tests contradicted',
      'file contradicted',
    ])
  })

  test('become stale when a file tool or a command changes the tree', async () => {
    using at = project()
    const claim = { text: 'All tests pass.' }
    expect(states(await told(at, [run('sh good/test.sh'), claim]))).toEqual(['tests proved'])
    expect(states(await told(at, [run('sh good/test.sh'), write('src/a.ts'), claim]))).toEqual(['tests stale'])
    expect(states(await told(at, [run('sh good/test.sh'), run('echo y > src/a.ts'), claim]))).toEqual(['tests stale'])
    expect(states(await told(at, [run('sh good/test.sh'), run('cat src/a.ts'), claim]))).toEqual(['tests proved'])
  })

  test('name what commands and file tools changed, and what was denied', async () => {
    using at = project()
    const claim = { text: 'Created `made.txt`, updated `good/test.sh` and deleted `bad/test.sh`.' }
    const calls = [run('echo 1 > made.txt'), write('good/test.sh'), call('file_delete', { path: 'bad/test.sh' })]
    expect(states(await told(at, [...calls, claim]))).toEqual(['file proved', 'file proved', 'file proved'])
    const denied = await told(at, [write('/etc/made.conf'), { text: 'I wrote `/etc/made.conf`.' }])
    expect(denied.proof).toMatchObject([{ state: 'contradicted', why: 'the change of /etc/made.conf was denied' }])
  })

  test('of a later turn are stale when only an earlier turn proved them', async () => {
    using at = project()
    await told(at, [run('sh good/test.sh'), { text: 'ok' }])
    const later = await told(at, [{ text: 'Yes, all tests pass.' }], ['-c'])
    expect(later.proof).toMatchObject([
      { state: 'stale', why: '`sh good/test.sh` ran in an earlier turn, and files may have changed since' },
    ])
  })

  test('are a field of the last line of stream-json, and of nothing else', async () => {
    using at = project()
    const { stdout } = await turn(at, [{ text: 'Done.' }], ['--output-format', 'stream-json'])
    const lines = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines.map((line) => 'proof' in line)).toEqual([...lines.slice(1).map(() => false), true])
    expect(lines.at(-1)).toMatchObject({ type: 'done', result: 'Done.', proof: [{ kind: 'done', state: 'unproved' }] })
  })

  test('are one line each at a terminal, below the answer', async () => {
    using at = project()
    const shown = async (text: string) => {
      const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture([run('sh good/test.sh'), { text }]) }
      return (await at.terminal(['agent', ...auto, '-m', 'go'], [], { env })).stdout
    }
    expect(await shown('All tests pass.')).toMatch(/All tests pass\.\r?\n.*proved: 1 claim/)
    expect(await shown('I pushed it.')).toMatch(/I pushed it\.\r?\n.*unproved: "I pushed": nothing in this turn did a push/)
    expect(await shown('Paris.')).not.toContain('proved')
  })

  test('are not looked for when the setting is off', async () => {
    using at = home('', '')
    expect((await turn(at, [{ text: 'Done.' }], ['--json'], { env: { BRAIDCLAW_PROOF_OF_DONE: 'off' } })).stdout).not.toContain('proof')
  })
})

describe.if(bwrap)('--require-proof', () => {
  test('sends the model back once with the facts, and a proved answer then ends well', async () => {
    using at = project()
    const replies = [
      run('sh bad/test.sh'),
      { text: 'All tests pass.' },
      run('sh good/test.sh'),
      { text: 'Now all tests pass: {{last_user_message}}' },
    ]
    const done = await told(at, replies, ['--require-proof'])
    expect([done.exitCode, states(done)]).toEqual([0, ['tests proved']])
    expect(done.result).toContain('the last run of `sh bad/test.sh` exited 1')
    expect((await at.run(['replay', 'last'])).code).toBe(0)
    expect((await at.run(['receipt', 'verify', '--deep'])).code).toBe(0)
  })

  test('ends with 11 and the list when the model insists', async () => {
    using at = project()
    const { code, stderr } = await turn(at, [{ text: 'All tests pass, and I pushed it.' }], ['--require-proof'])
    expect(code).toBe(11)
    expect(stderr).toContain(
      'the answer claims what nothing proves: "All tests pass" is unproved: nothing in this turn ran the tests; "I pushed"',
    )
    expect((await at.run(['run', 'list'])).stdout).toContain('checks_failed')
  })

  test('is satisfied by an answer without claims, and by one that takes them back', async () => {
    using at = project()
    expect((await told(at, [{ text: 'Paris.' }], ['--require-proof'])).exitCode).toBe(0)
    const honest = await told(at, [{ text: 'All tests pass.' }, { text: 'I have not run the tests.' }], ['--require-proof'])
    expect([honest.exitCode, honest.result, honest.proof]).toEqual([0, 'I have not run the tests.', undefined])
  })

  test('is a setting as well, and not for copies or a confined agent', async () => {
    using at = home()
    const { code } = await turn(at, [{ text: 'Done.' }], [], { env: { BRAIDCLAW_PROOF_OF_DONE: 'require' } })
    expect(code).toBe(11)
    for (const other of [['--attempts', '2'], ['--confined']])
      expect((await turn(at, [{ text: 'Done.' }], ['--require-proof', ...other])).stderr).toContain('leave out --attempts and --confined')
  })
})

describe.if(bwrap)('with proof_of_done_model the model is asked, too', () => {
  const env = { BRAIDCLAW_PROOF_OF_DONE_MODEL: 'true' }
  const list = (claims: readonly object[]) => ({ text: JSON.stringify({ claims }) })
  const german = { text: 'Alle Tests laufen durch, und ich habe `src/b.ts` angelegt.' }
  const claims = [
    { kind: 'tests', quote: 'Alle Tests laufen durch' },
    { kind: 'file', quote: 'ich habe `src/b.ts` angelegt', path: 'src/b.ts', op: 'created' },
  ]
  const asked = async (at: Nest, responses: readonly object[], args: readonly string[] = []): Promise<Told> =>
    JSON.parse((await turn(at, responses, [...auto, '--json', ...args], { env })).stdout)

  test('and finds claims in other languages, each once', async () => {
    using at = project()
    expect(states(await told(at, [run('sh bad/test.sh'), german]))).toEqual([])
    expect(states(await asked(at, [run('sh bad/test.sh'), german, list(claims)]))).toEqual(['tests contradicted', 'file contradicted'])
    const both = [run('sh bad/test.sh'), { text: 'All tests pass.' }, list([{ kind: 'tests', quote: 'All tests pass.' }])]
    expect(states(await asked(at, both))).toEqual(['tests contradicted'])
  })

  test('and what it makes up is left out: words, paths and commands that the answer does not have', async () => {
    using at = project()
    const lies = [
      { kind: 'git', op: 'push', quote: 'I pushed it' },
      { kind: 'file', quote: 'Alle Tests', path: 'src/c.ts', op: 'created' },
      { kind: 'ran', quote: 'Alle Tests', command: 'npm test' },
      { kind: 'done', quote: ' ** ' },
    ]
    expect(states(await asked(at, [german, list([...lies, ...claims])]))).toEqual(['tests unproved', 'file contradicted'])
  })

  test('and without a list that can be read the grammar alone decides', async () => {
    using at = project()
    for (const reply of [{ text: 'no idea' }, list([{ kind: 'wonder', quote: 'All' }]), { error: 'auth' }])
      expect(states(await asked(at, [{ text: 'All tests pass.' }, reply]))).toEqual(['tests unproved'])
  })

  test('and sends the model back, with one question for each answer', async () => {
    using at = project()
    const replies = [run('sh bad/test.sh'), german, list(claims), { text: 'Die Tests schlagen fehl.' }, list([])]
    const { result, exitCode, proof } = await asked(at, replies, ['--require-proof'])
    expect([exitCode, result, proof]).toEqual([0, 'Die Tests schlagen fehl.', undefined])
    expect((await at.run(['replay', 'last'])).code).toBe(0)
  })
})

test.if(bwrap)('docs/proof-of-done.md: its two examples print what it says', async () => {
  const page = readFileSync(join(import.meta.dir, '../../docs/proof-of-done.md'), 'utf8')
  const blocks = [...page.matchAll(/^```(\w*)\n(.*?)^```$/gms)].map(([, language, text = '']) => ({ language, text }))
  const { responses } = JSON.parse(blocks.find(({ language }) => language === 'json')?.text ?? '')
  using at = home()
  at.file('test.sh', 'exit 1\n')
  for (const { text } of blocks.filter(({ text }) => text.startsWith('$ '))) {
    const [command = '', ...lines] = text.trimEnd().split('\n')
    const args = command.slice(command.indexOf('braidclaw agent') + 'braidclaw '.length).match(/"[^"]*"|\S+/g) ?? []
    const env = { BRAIDCLAW_MOCK_FIXTURE: at.fixture(responses) }
    const { stdout } = await at.terminal(
      args.map((word) => word.replaceAll('"', '')),
      [],
      { env },
    )
    expect(stripVTControlCharacters(stdout).replaceAll('\r', '')).toContain(`${lines.join('\n')}\n`)
  }
})

test.if(bwrap)('over HTTP the answer has them, and so has the run', async () => {
  using at = project()
  await using server = await gateway(at, [], { env: { BRAIDCLAW_MOCK_FIXTURE: at.fixture([{ text: 'I pushed it.' }]) } })
  const { body } = await server.ask('/chat', { message: 'go' })
  const proof = [{ kind: 'git', state: 'unproved', claim: 'I pushed', why: 'nothing in this turn did a push' }]
  expect(body).toMatchObject({ text: 'I pushed it.', proof })
  expect((await server.ask(`/runs/${body.run_id}`)).body).toMatchObject({ proof })
})
