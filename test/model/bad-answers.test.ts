import { describe, expect, test } from 'bun:test'
import { type Nest, nest, type Result } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { call, home, refused, turn } from '../support/turns.ts'
import { unknownQuestion } from '../support/window-questions.ts'

const answer = { text: 'Got: {{last_tool_result}}' }

describe('a provider that answers', () => {
  type Reply = { readonly body: string; readonly status?: number; readonly type?: string }
  const chunk = (delta: object, finish: string | null = null) =>
    `data: ${JSON.stringify({ id: 'x', object: 'chat.completion.chunk', created: 1, model: 'm', choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`
  const badCall = { tool_calls: [{ index: 0, id: 'a', type: 'function', function: { name: 'file_list', arguments: '{"path": ' } }] }

  /** One turn against a server on loopback that gives these replies in order, the last for ever. */
  async function ask(replies: readonly Reply[]): Promise<Result> {
    using at = nest()
    let count = 0
    const server = Bun.serve({
      port: 0,
      hostname: '127.0.0.1',
      fetch(request) {
        const unknown = unknownQuestion(request)
        if (unknown) return unknown
        const { body, status = 200, type = 'text/event-stream' } = replies[Math.min(count++, replies.length - 1)] ?? { body: '' }
        return new Response(body, { status, headers: { 'content-type': type } })
      },
    })
    at.config(
      `default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:${server.port}/v1"\nmodel = "m"\nmax_retries = 0\n`,
    )
    try {
      return await at.run(['agent', '-m', 'hi'])
    } finally {
      await server.stop(true)
    }
  }

  test.each<[string, Reply, number]>([
    ['HTML', { body: '<html><body>Please log in</body></html>', type: 'text/html' }, 8],
    ['HTML with 502', { body: '<html>Bad gateway</html>', status: 502, type: 'text/html' }, 8],
    ['401', { body: '{"error":{"message":"bad key"}}', status: 401, type: 'application/json' }, 8],
    ['429', { body: '{"error":{"message":"slow down"}}', status: 429, type: 'application/json' }, 8],
    ['nothing', { body: '' }, 8],
    ['a stream that breaks off in an event', { body: chunk({ role: 'assistant', content: 'Half an answer' }).slice(0, -40) }, 8],
    ['a stream that is no JSON', { body: 'data: {"choices": [\n\ndata: [DONE]\n\n' }, 8],
    ['numbers where text should be', { body: `data: {"choices":[{"delta":{"content":17}}]}\n\ndata: [DONE]\n\n` }, 8],
  ])('%s', async (_, reply, expected) => {
    const { code, stderr } = await ask([reply])
    expect(code).toBe(expected)
    expect(stderr).toContain('error: ')
    expect(stderr).not.toContain('    at ')
  })

  test('with arguments that are no JSON: the model is told, and may answer', async () => {
    const { code, stdout, stderr } = await ask([
      { body: `${chunk(badCall)}${chunk({}, 'tool_calls')}data: [DONE]\n\n` },
      { body: `${chunk({ content: 'I see, sorry.' })}${chunk({}, 'stop')}data: [DONE]\n\n` },
    ])
    expect(stdout).toBe('I see, sorry.\n')
    expect(code).toBe(3)
    expect(stderr).toContain('file_list')
  })

  test('with terminal codes: a pipe gets them as they are, and the end is clean', async () => {
    const { code, stdout } = await ask([{ body: `${chunk({ content: '\u001b[2Jhi' })}${chunk({}, 'stop')}data: [DONE]\n\n` }])
    expect([code, stdout]).toEqual([0, '\u001b[2Jhi\n'])
  })

  test('not at all', async () => {
    using at = nest()
    at.config(
      'default_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:1/v1"\nmodel = "m"\nmax_retries = 0\n',
    )
    refused(await at.run(['agent', '-m', 'hi']), 8, '127.0.0.1:1')
  })
})

describe('a tool', () => {
  const shell = (at: Nest, command: string, more: readonly object[] = [answer]) =>
    turn(at, [call('shell', { command }), ...more], ['--approve-all-medium'])

  test.if(needs('bwrap'))('that floods is ended, its output cut with an exact notice', async () => {
    using at = home()
    const { code, stdout } = await shell(at, 'seq 100000000')
    expect(code).toBe(0)
    expect(stdout.length).toBeLessThan(66_000)
    expect(stdout).toContain('stopped after printing more than 67108864 bytes')
    expect(stdout).toContain('Got: ')
  })

  test.if(needs('bwrap'))('that hangs is ended after its time, with its children', async () => {
    using at = home('\n[limits]\nshell_timeout_s = 0.5\n')
    const { code, stdout } = await shell(at, 'echo begun; sleep 101 & sleep 102')
    expect(code).toBe(0)
    expect(stdout).toContain('begun')
    expect(stdout).toContain('timed out after 0.5 s')
    expect(Bun.spawnSync(['pgrep', '-f', '^sleep 10[12]$']).stdout.toString()).toBe('')
  })

  test.if(needs('bwrap'))('that dies is a failure with its signal, and the turn goes on', async () => {
    using at = home()
    const { code, stdout } = await turn(at, [call('shell', { command: 'echo begun; kill -9 $$' }), answer], ['--autonomy', 'full'])
    expect(code).toBe(0)
    expect(stdout).toContain('begun')
    expect(stdout).toContain('SIGKILL')
  })

  test.if(needs('bwrap'))('that cannot start, or fails', async () => {
    using at = home()
    expect((await shell(at, 'ls no-such-file')).stdout).toContain('No such file')
    expect((await at.run(['tool', 'run', 'shell', '--json', '{"command":"ls no-such-file"}', '--approve-all-medium'])).code).toBe(1)
  })

  test('given what is not in its schema says what is', async () => {
    using at = home()
    const { code, stdout } = await turn(at, [call('file_read', { file: 'a' }), answer])
    expect(code).toBe(3)
    expect(stdout).toContain('path')
  })
})
