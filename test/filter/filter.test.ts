/** The filter where it could go wrong: what reaches the model, what reaches stdout, and what is left behind. */

import { afterEach, beforeEach, describe, expect, test } from 'bun:test'
import { existsSync, mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { agentFile, events, session, write } from '../support/agent-files.ts'
import { minimumConfig, type Nest, nest } from '../support/cli.ts'
import { dialects, type Speech } from '../support/dialects.ts'
import { shell, stub } from '../support/shell.ts'
import { alone, call, home, refused, scripted } from '../support/turns.ts'
import { type Fake, sends, startFake } from '../support/vendor-fake.ts'

describe('nothing is asked, nothing is left behind', () => {
  test.each([
    [['-m', 'what time is it?'], "braidclaw 'what time is it?'"],
    [['-m', "what's `id`"], "braidclaw 'what'\\''s `id`'"],
    [['-m', 'local/mock'], '-m names the model here (local/mock)'],
    [['-s', 'missing.md', 'hello there'], 'looks like a file, and there is none'],
    [['--agent', 'ghost', 'hello there'], 'no agent "ghost"; there are: coder, default'],
    [['--agent', 'codre', 'hello there'], 'did you mean "coder"?'],
    [['--agent', '../../etc', 'hello there'], 'must be the name of an agent'],
    [['-c', '--resume', 'x', 'hello there'], 'name two conversations'],
    [['--tool-backend', 'bash', 'hello there'], 'name them with --tools'],
    [['--tools', 'default', '--tool-backend', 'bash', '-c', 'hello there'], '-c means nothing with the tool backend "bash"'],
    [['--tools', 'nowhere', 'hello there'], '--tools nowhere'],
    [['sesion'], 'did you mean "session"?'],
    [['--json'], 'nothing to answer'],
    [[''], 'nothing to answer'],
  ])('%j', async (args, says) => {
    using at = nest()
    mkdirSync(agentFile(at, '', 'coder'), { recursive: true })
    const done = await at.run(args, { env: stub })
    expect([done.stdout, done.stderr]).toEqual(['', expect.stringContaining(says)])
    expect(done.code).toBe(2)
    expect([session(at), existsSync(join(at.home, '.braidclaw/memory.sqlite'))]).toEqual([[], false])
  })

  test('an empty pipe: the failure of the neighbour goes on', async () => {
    using at = nest()
    const { code, stdout, stderr } = await shell(at, 'false | braidclaw -s shout | cat')
    expect([code, stdout, stderr]).toEqual([2, '', expect.stringContaining('nothing to answer')])
  })
})

describe('stdout', () => {
  test('a provider that fails in the middle of its answer: exit 8, and not one byte of it', async () => {
    using at = home()
    const fake = startFake(() =>
      sends([
        'data: {"choices":[{"index":0,"delta":{"content":"half of i"}}]}\n\n',
        'data: {"error":{"message":"over","type":"server_error"}}\n\n',
      ]),
    )
    at.config(`[providers.models.far]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${fake.url}"\nmax_retries = 0\n`)
    const done = await at.run(['-m', 'far/m', 'hello there'])
    fake.stop()
    expect([done.code, done.stdout]).toEqual([8, ''])
    expect([session(at), events(at).map((line) => line.split(':')[0])]).toEqual([['user: hello there'], ['user_input', 'error']])
  })

  test('with tools it is the last answer alone; what was said on the way is for a terminal', async () => {
    using at = home()
    at.file('a.txt', 'from the file')
    const replies = [{ ...call('file_read', { path: 'a.txt' }), text: 'Let me look.' }, { text: 'It is: {{last_tool_result}}' }]
    const done = await at.run(['--tools', 'default', 'what is in it?'], scripted(at, replies))
    expect([done.code, done.stderr]).toEqual([0, expect.stringContaining('· file_read {"path":"a.txt"}')])
    expect(done.stdout).toStartWith('It is: ')
    expect(done.stdout).not.toContain('Let me look.')
    const shown = await at.terminal(['--tools', 'default', 'what is in it?'], [], scripted(at, replies))
    expect(shown.stdout).toMatch(/Let me look\.[\s\S]*It is: /)
    const [asked, wanted, got, answered] = events(at)
    expect([asked, wanted]).toEqual(['user_input: what is in it?', 'tool_call: file_read {"path":"a.txt"}'])
    expect([got, answered]).toEqual([expect.stringContaining('tool_result: file_read: '), expect.stringContaining('llm_response: It is: ')])
    expect(session(at).slice(0, 2)).toEqual(['user: what is in it?', expect.stringContaining('assistant: It is: ')])
  })

  test('a refused tool: exit 3, traced as denied, with a receipt', async () => {
    using at = home()
    const replies = [call('file_read', { path: '/etc/passwd' }), { text: 'I may not.' }]
    const done = await at.run(['--tools', 'default', 'read it'], { ...scripted(at, replies), through: alone })
    expect([done.code, done.stdout]).toEqual([3, 'I may not.\n'])
    expect(events(at)[2]).toStartWith('denied: file_read: Denied by path.')
    expect((await at.run(['receipt', 'verify'])).code).toBe(0)
  })

  test('without --tools a call has nothing to be carried out with', async () => {
    using at = home()
    at.file('a.txt', 'secret of the file')
    const done = await at.run(['read it'], scripted(at, [call('file_read', { path: 'a.txt' }), { text: 'Said: {{last_tool_result}}' }]))
    expect(done.stdout).not.toContain('secret of the file')
    expect(done.code).toBe(3)
  })

  test('an answer that ends in a newline gets no second one; a long one survives head', async () => {
    using at = home()
    expect((await at.run(['hello there'], scripted(at, [{ text: 'one\n' }]))).stdout).toBe('one\n')
    const long = scripted(at, [{ text: `first\n${'x'.repeat(300_000)}`, chunks: 50 }])
    expect(await shell(at, 'set +o pipefail; braidclaw "a long one" | head -1; echo "${PIPESTATUS[0]}"', long.env)).toEqual({
      code: 0,
      stdout: 'first\n0\n',
      stderr: '',
    })
    const { stdout } = await shell(at, 'braidclaw "a long one" | wc -c', long.env)
    expect(stdout.trim()).toBe('300007')
  })

  test('--json and stream-json as everywhere', async () => {
    using at = nest()
    const { stdout } = await at.run(['--json', 'hello there'], { env: stub })
    expect(JSON.parse(stdout)).toMatchObject({ result: 'stub response 1', ending: 'answered', exitCode: 0 })
    const lines = (await at.run(['--output-format', 'stream-json', 'hello there'], { env: stub })).stdout.trim().split('\n')
    expect(JSON.parse(lines.at(-1) ?? '')).toMatchObject({ type: 'done', result: 'stub response 2' })
  })
})

describe('what the model is asked', () => {
  const state: { fake?: Fake } = {}
  const [dialect] = dialects
  const say = (speech: Speech) => sends(dialect?.events(speech) ?? [])
  beforeEach(() => {
    state.fake = startFake(() => say({ text: ['fine'] }))
  })
  afterEach(() => state.fake?.stop())

  function wired(): Nest {
    const at = nest()
    at.config(`default_provider = "far"\n${minimumConfig.split('\n').slice(4).join('\n')}
[providers.models.far]
kind = "openai-compatible"
model = "model-0"
base_url = "${state.fake?.url}"
`)
    return at
  }

  const asked = (): { model: string; tools?: unknown[]; messages: { role: string; content: string }[] } =>
    JSON.parse(state.fake?.asked.at(-1)?.text ?? '{}')

  test('the question alone, when there is no soul: no tools, no words of ours', async () => {
    using at = wired()
    expect((await at.run(['hello there'])).stdout).toBe('fine\n')
    expect(asked()).toMatchObject({ model: 'model-0', messages: [{ role: 'user', content: 'hello there' }] })
    expect([asked().tools ?? [], asked().messages.length]).toEqual([[], 1])
  })

  test('the soul with its context, -s in its place, as a text or from a file', async () => {
    using at = wired()
    write(agentFile(at, 'soul.md'), 'You are brief.')
    write(agentFile(at, 'context/1.md'), 'Today is dull.')
    const system = async (...args: string[]) => {
      await at.run(['hello there', ...args])
      return asked().messages[0]
    }
    expect(await system()).toEqual({ role: 'system', content: 'You are brief.\n\nToday is dull.\n' })
    expect(await system('-s', 'Shout.')).toEqual({ role: 'system', content: 'Shout.' })
    expect(await system('-s', at.file('shout.md', 'From a file.\n'))).toEqual({ role: 'system', content: 'From a file.\n' })
    await shell(at, 'braidclaw -s <(echo from a pipe) "hello there"', {})
    expect(asked().messages[0]).toEqual({ role: 'system', content: 'from a pipe\n' })
  })

  test('agents.json: a soul of its own and a model of its own, which -m overrides', async () => {
    using at = wired()
    write(join(at.home, '.braidclaw/agents.json'), JSON.stringify({ coder: { soul: 'souls/coder.md', model: 'coder-model' } }))
    write(join(at.home, '.braidclaw/souls/coder.md'), 'You code.')
    await at.run(['--agent', 'coder', 'hello there'])
    expect(asked()).toMatchObject({ model: 'coder-model', messages: [{ content: 'You code.' }, { content: 'hello there' }] })
    await at.run(['--agent', 'coder', '-m', 'other', 'hello there'])
    expect(asked().model).toBe('other')
    expect([session(at), session(at, 'coder').length]).toEqual([[], 4])
  })

  test('-c brings the earlier turns of this agent, and of no other', async () => {
    using at = wired()
    mkdirSync(agentFile(at, '', 'coder'), { recursive: true })
    await at.run(['first question'])
    await at.run(['--agent', 'coder', 'not yours'])
    await at.run(['-c', 'second question'])
    expect(asked().messages.map(({ content }) => content)).toEqual(['first question', 'fine', 'second question'])
  })

  test('with tools: the ten, our words on the gate, and the soul in place of our first sentence', async () => {
    using at = wired()
    write(agentFile(at, 'soul.md'), 'You are brief.')
    await at.run(['--tools', 'default', 'hello there'])
    const [system] = asked().messages
    expect(asked().tools?.length).toBeGreaterThan(3)
    expect(system?.content).toStartWith('You are brief.\nWorkspace: ')
    expect(system?.content).toContain('A gate judges each call.')
  })

  test('agent --agent: the soul, the mirror, and the session that -c goes on with', async () => {
    using at = wired()
    write(agentFile(at, 'soul.md', 'coder'), 'You code.')
    expect((await at.run(['agent', '-m', 'plain'])).code).toBe(0)
    expect(asked().messages[0]?.content).toStartWith('You are BraidClaw')
    await at.run(['agent', '--agent', 'coder', '-m', 'first'])
    expect(asked().messages[0]?.content).toStartWith('You code.\nWorkspace: ')
    await at.run(['agent', '-m', 'another conversation'])
    await at.run(['agent', '--agent', 'coder', '-c', '-m', 'second'])
    expect(
      asked()
        .messages.slice(1)
        .map(({ content }) => content),
    ).toEqual(['first', 'fine', 'second'])
    expect(session(at, 'coder')).toEqual(['user: first', 'assistant: fine', 'user: second', 'assistant: fine'])
    expect(session(at)).toEqual([])
    refused(await at.run(['agent', '--agent', 'codre', '-m', 'x']), 2, 'did you mean "coder"?')
  })

  test('the conversation in a terminal is mirrored, turn by turn', async () => {
    using at = wired()
    mkdirSync(agentFile(at, '', 'coder'), { recursive: true })
    await at.terminal(
      ['agent', '--agent', 'coder'],
      [
        ['> ', 'one\r'],
        ['fine\r\n', ''],
        ['> ', 'two\r'],
        ['fine\r\n', ''],
        ['> ', '\u0004'],
      ],
    )
    expect(session(at, 'coder')).toEqual(['user: one', 'assistant: fine', 'user: two', 'assistant: fine'])
  })

  test('Ctrl-C: exit 130, nothing on stdout, the question alone in the session', async () => {
    using at = wired()
    state.fake?.stop()
    state.fake = startFake(() => sends(['data: {"choices":[{"index":0,"delta":{"content":"half"}}]}\n\n'], 'hold'))
    at.config(`default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${state.fake.url}"\n`)
    const { pid, result } = at.start(['hello there'])
    while ((state.fake?.asked.length ?? 0) === 0) await Bun.sleep(5)
    process.kill(pid, 'SIGINT')
    expect(await result).toEqual({ code: 130, stdout: '', stderr: 'cancelled\n' })
    expect(session(at)).toEqual(['user: hello there'])
  })
})

test('completion offers the flags of the filter, and the agents there are', async () => {
  using at = nest()
  mkdirSync(agentFile(at, '', 'coder'), { recursive: true })
  const toolsForModel = async (...words: string[]) => (await at.run(['__complete', 'bash', ...words])).stdout.trimEnd().split('\n')
  expect(await toolsForModel('--sys')).toEqual(['--system'])
  expect(await toolsForModel('--agent', 'c')).toEqual(['coder'])
  expect(await toolsForModel('filter', '--tool-')).toEqual(['--tool-backend', '--tool-env'])
  expect(await toolsForModel('ses')).toEqual(['session'])
})
