/** The flags that the filter shares with llm: what the model gets, and what stdout has in the end. */

import { describe, expect, test } from 'bun:test'
import { statSync } from 'node:fs'
import type { Nest } from '../support/cli.ts'
import { dialects } from '../support/dialects.ts'
import { needs } from '../support/needs.ts'
import { shell } from '../support/shell.ts'
import { withTemplate } from '../support/templates.ts'
import { alone, call, home, refused, scripted, turn } from '../support/turns.ts'
import { sends, startFake } from '../support/vendor-fake.ts'

const echo = [{ text: '<{{last_user_message}}>' }]

describe('--schema', () => {
  const dog = ['--schema', 'name, age int']
  const good = '{"name": "Rex", "age": 4}'
  const asked = (at: Nest, replies: readonly object[], ...args: readonly string[]) =>
    at.run([...dog, 'Invent a dog', ...args], scripted(at, replies))

  test('an answer that never fits: exit 1, the place on stderr, nothing on stdout', async () => {
    using at = home()
    const done = await asked(at, [{ text: '{"name": "Rex", "age": "four"}' }])
    refused(done, 1, 'error: the model did not meet --schema in 3 answers: answer/age must be integer')
    expect(done.stderr).toContain('note: answer/age must be integer; the model is asked again (2 of 3)')
    const json = await asked(at, [{ text: 'no' }], '--json')
    expect([json.code, JSON.parse(json.stdout)]).toMatchObject([1, { result: null, structured: null, ending: 'error', exitCode: 1 }])
  })

  test('one that fits after a hint: exactly it, and one JSON object for all that was used', async () => {
    using at = home()
    const usage = { input_tokens: 10, output_tokens: 2 }
    const replies = [
      { text: 'A dog? Sure.', usage },
      { text: `Sorry:\n\n\`\`\`json\n${good}\n\`\`\`\nEnjoy!`, usage },
    ]
    expect(await asked(at, replies, '-q')).toEqual({ code: 0, stdout: `${good}\n`, stderr: '' })
    const { stdout } = await asked(at, replies, '--json', '-q')
    expect(JSON.parse(stdout)).toMatchObject({
      result: good,
      structured: { name: 'Rex', age: 4 },
      usage: { inputTokens: 20, outputTokens: 4 },
    })
  })

  test('JSON names the tools of every try', async () => {
    using at = home()
    const { stdout } = await asked(at, [call('time', {}), { text: 'late' }, { text: good }], '--tools', 'default', '--json', '-q')
    expect(JSON.parse(stdout)).toMatchObject({ result: good, tools: [{ name: 'time', status: 'completed' }] })
  })

  test('more than it wants is refused, and numbers stay as they were written', async () => {
    using at = home()
    refused(await asked(at, [{ text: '{"name": "Rex", "age": 4, "x": 1}' }]), 1, 'answer must NOT have additional properties')
    const big = '{"n": 12345678901234567890.10}'
    const { stdout } = await at.run(['--schema', 'n float', 'go'], scripted(at, [{ text: big }]))
    expect(stdout).toBe(`${big}\n`)
  })

  test('a schema that refers to itself is followed to where the answer is wrong', async () => {
    using at = home()
    const tree =
      '{"type":"object","properties":{"name":{"type":"string"},"kids":{"type":"array","items":{"$ref":"#"}}},"required":["name"]}'
    const done = await at.run(['--schema', tree, 'go'], scripted(at, [{ text: '{"name":"a","kids":[{"name":"b","kids":[{}]}]}' }]))
    refused(done, 1, "answer/kids/0/kids/0 must have required property 'name'")
  })

  test('a refused tool keeps its exit code, and its words are not printed for JSON', async () => {
    using at = home()
    const replies = [call('file_read', { path: '/etc/passwd' }), { text: 'I may not.' }]
    const done = await at.run([...dog, '--tools', 'default', 'read it'], { ...scripted(at, replies), through: alone })
    expect([done.code, done.stdout]).toEqual([3, ''])
  })

  test('a terminal gets it whole, once', async () => {
    using at = home()
    const { stdout } = await at.terminal([...dog, 'Invent a dog'], [], scripted(at, [{ text: `\`\`\`\n${good}\n\`\`\``, chunks: 9 }]))
    expect(stdout.match(/Rex/g)).toHaveLength(1)
    expect(stdout).not.toContain('```')
  })
})

test('-x and --xl: whole blocks alone, fences inside longer fences, and the answer without any', async () => {
  using at = home()
  const text = 'a\n```py\nprint(1)\n```\nb\n````md\n```\ninner\n```\n````\nc\n```sh\nnever ends'
  const printed = async (...args: string[]) => (await at.run(['go', ...args], scripted(at, [{ text }]))).stdout
  expect([await printed('-x'), await printed('--xl')]).toEqual(['print(1)\n', '```\ninner\n```\n'])
  expect(JSON.parse(await printed('-x', '--json')).result).toBe('print(1)')
  expect((await at.run(['-x', 'go'], scripted(at, [{ text: 'no `code`' }]))).stdout).toBe('no `code`\n')
})

test('a block in five megabytes of fences that do not end takes no time', async () => {
  using at = home()
  const begin = performance.now()
  const { code } = await at.run(['-x', 'go'], scripted(at, [{ text: '```a\n``\n'.repeat(300_000) }]))
  expect(code).toBe(0)
  expect(performance.now() - begin).toBeLessThan(9_000)
})

test('-a: several files below their names, and a pipe behind the question', async () => {
  using at = home()
  at.file('a.txt', 'one\n')
  const { stdout } = await shell(
    at,
    'echo piped | braidclaw -a a.txt -a <(echo two) -a - "What?" | sed s,/dev/fd/[0-9]*,PIPE,',
    scripted(at, echo).env,
  )
  expect(stdout).toBe('<What?\n\npiped\n\na.txt:\none\n\nPIPE:\ntwo>\n')
})

describe('-t', () => {
  test('reads the files of llm: system, prompt, defaults, options, a schema, and only what is asked for is filled in', async () => {
    using at = home()
    withTemplate(at, 'a.yaml', 'prompt: "In $$: $input, ${voice}, $5"\ndefaults:\n  voice: $input\noptions:\n  timeout: 30\n')
    const run = async (...args: string[]) => (await at.run(args, scripted(at, echo))).stdout
    expect(await run('-t', 'a', 'it $voice')).toBe('<In $: it $voice, $input, $5>\n')
    withTemplate(at, 'b.yml', 'prompt: Do it.\nmodel: local/other\n')
    expect(await run('-t', 'b')).toBe('<Do it.>\n')
    expect(await run('-t', 'b', 'now')).toBe('<Do it.\n\nnow>\n')
    expect(JSON.parse(await run('-t', 'b', '--json'))).toMatchObject({ model: 'other' })
    expect(JSON.parse(await run('-t', 'b', '-m', 'local/mine', '--json'))).toMatchObject({ model: 'mine' })
    withTemplate(at, 'c.yaml', 'system: s\nschema_object:\n  type: object\n  required: [n]\nextract: false\n')
    refused(await at.run(['-t', 'c', '-q', 'x'], scripted(at, [{ text: '{}' }])), 1, "answer must have required property 'n'")
    const path = at.file('d.yaml', 'Just a text with $input')
    expect(await run('-t', path, 'me')).toBe('<Just a text with me>\n')
  })

  test('new, list, show, edit, delete', async () => {
    using at = home()
    refused(await at.run(['template', 'new', '../x', '-s', 'a']), 2, 'must be a name')
    refused(await at.run(['template', 'new', 'x']), 2, 'needs a prompt')
    refused(await at.run(['template', 'new', 'x', '-s', 'a', '--schema', 'n strng']), 2, 'no type "strng"')
    expect((await at.run(['template'])).stderr).toContain('no templates yet')
    const { stdout } = await at.run(['template', 'new', 'x', '-s', 'Be $how', '--extract', 'Say: $input'])
    expect(statSync(stdout.trim()).mode & 0o777).toBe(0o600)
    refused(await at.run(['template', 'new', 'x', 'a']), 2, 'exists already; to change it: braidclaw template edit x')
    withTemplate(at, 'broken.yaml', 'promt: x')
    const items = JSON.parse((await at.run(['template', 'list', '--json'])).stdout)
    expect(items).toMatchObject([
      { name: 'broken', begins: 'promt: x' },
      { name: 'x', begins: 'prompt: "Say: $input" system: Be $how extract: true' },
    ])
    expect((await at.run(['template', 'show', 'x'])).stdout).toBe('prompt: "Say: $input"\nsystem: Be $how\nextract: true\n')
    refused(await at.run(['template', 'edit', 'x']), 2, 'an editor needs a terminal')
    const edited = await at.terminal(['template', 'edit', 'x'], [], { env: { VISUAL: 'f() { echo "prompt: [1]" > "$1"; }; f' } })
    expect([edited.code, edited.stdout]).toEqual([2, expect.stringContaining('"prompt" must be of type string')])
    expect((await at.run(['template', 'delete', 'x'])).code).toBe(0)
    refused(await at.run(['template', 'delete', 'x']), 2, 'no template "x"; there are: broken')
    expect((await at.run(['__complete', 'bash', '-t', 'b'])).stdout).toBe('broken\n')
  })
})

test('-o reaches the wire', async () => {
  using at = home()
  const [dialect] = dialects
  const fake = startFake(() => sends(dialect?.events({ text: ['fine'] }) ?? []))
  at.config(`[providers.models.far]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${fake.url}"\n`)
  const done = await at.run(['-m', 'far/m', '-o', 'temperature=0.25', '-o', 'max_tokens=77', 'hello there'])
  fake.stop()
  expect([done.stdout, JSON.parse(fake.asked[0]?.text ?? '{}')]).toMatchObject(['fine\n', { temperature: 0.25 }])
  expect(fake.asked[0]?.text).toMatch(/"max_(completion_)?tokens":77/)
  refused(await at.run(['-m', 'far/m', '-o', 'temperature=9', 'hi']), 2, '-o temperature: 9 is out of range; must be from 0 to 2')
  refused(await at.run(['-m', 'far/m', '-o', 'base_url=http://x', 'hi']), 2, 'has no such option')
})

test('-u says what was used, -q leaves out notes and not that, and --no-stream waits', async () => {
  using at = home()
  const replies = [{ text: 'Hi there', chunks: 4, usage: { input_tokens: 5, output_tokens: 2 } }]
  expect(await at.run(['-u', '-q', 'hello there'], scripted(at, replies))).toEqual({
    code: 0,
    stdout: 'Hi there\n',
    stderr: '5 tokens in, 2 out\n',
  })
  const shown = await at.terminal(['--no-stream', 'hello there'], [], scripted(at, replies))
  expect(shown.stdout.match(/Hi there/g)).toHaveLength(1)
})

describe('the message of agent', () => {
  test('is -m, -p or a word of its own; two are an error', async () => {
    using at = home()
    const run = async (...args: string[]) => (await at.run(['agent', ...args], scripted(at, echo))).stdout
    expect([await run('-p', 'hi'), await run('--print', 'hi'), await run('fix it'), await run('-m', 'hi')]).toEqual([
      '<hi>\n',
      '<hi>\n',
      '<fix it>\n',
      '<hi>\n',
    ])
    expect((await at.run(['-p', 'hi'], scripted(at, echo))).stdout).toBe('<hi>\n')
    refused(await at.run(['agent', '-m', 'a', 'b'], scripted(at, echo)), 2, '"a" and "b" are two messages; pass one')
    refused(await at.run(['agent', 'list'], scripted(at, echo)), 2, '"agent" has no command "list"')
  })

  test.if(needs('bwrap'))('with --check, JSON waits for the checks and says how they ended', async () => {
    using at = home()
    const done = await turn(at, [{ text: 'done' }], ['--json', '--check', 'false'])
    expect([done.code, JSON.parse(done.stdout)]).toMatchObject([11, { ending: 'checks_failed', exitCode: 11, result: 'done' }])
    const good = await turn(at, [{ text: 'done' }], ['--json', '--check', 'true'])
    expect([good.code, JSON.parse(good.stdout)]).toMatchObject([0, { ending: 'answered', exitCode: 0 }])
  })
})
