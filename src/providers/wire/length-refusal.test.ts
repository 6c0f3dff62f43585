import { describe, expect, test } from 'bun:test'
import { dialects } from '../../../test/support/dialects.ts'
import { plain, sends, serve } from '../../../test/support/vendor-fake.ts'
import { type Wording, wordings } from '../../../test/support/window-server.ts'
import { failureOf, lengthRefusal } from './failure-of-response.ts'

const message = (text: string, more: object = {}) => JSON.stringify({ error: { message: text, ...more } })

/** Status, body, and the two numbers that the words hold: the window, and the tokens of the prompt. */
type Row = readonly [string, number, string, number | undefined, number | undefined]

const refusals: readonly Row[] = [
  [
    'OpenAI with a completion',
    400,
    message(
      "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (8000 in the messages, 1000 in the completion). Please reduce the length of the messages or completion.",
      { type: 'invalid_request_error', param: 'messages', code: 'context_length_exceeded' },
    ),
    8192,
    8000,
  ],
  [
    'OpenAI with messages alone',
    400,
    message(
      "This model's maximum context length is 128000 tokens. However, your messages resulted in 130211 tokens. Please reduce the length of the messages.",
    ),
    128_000,
    130_211,
  ],
  [
    'OpenAI responses',
    400,
    message('Your input exceeds the context window of this model. Please adjust your input and try again.', {
      code: 'context_length_exceeded',
    }),
    undefined,
    undefined,
  ],
  ['a code alone, whatever the status', 500, message('refused', { code: 'context_length_exceeded' }), undefined, undefined],
  [
    'Anthropic',
    400,
    '{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long: 210000 tokens > 200000 maximum"}}',
    200_000,
    210_000,
  ],
  ['Anthropic with separators', 400, message('prompt is too long: 210,000 tokens > 200,000 maximum'), 200_000, 210_000],
  [
    'Anthropic with max_tokens',
    400,
    message(
      'input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease input length or `max_tokens` and try again',
    ),
    200_000,
    188_240,
  ],
  [
    'OpenRouter with the error of a vendor inside',
    400,
    message('Provider returned error', {
      code: 400,
      metadata: {
        provider_name: 'Far',
        raw: message(
          "This endpoint's maximum context length is 8192 tokens. However, you requested about 12000 tokens (10000 of text input, 2000 in the output). Please reduce the length of either one.",
        ),
      },
    }),
    8192,
    10_000,
  ],
  [
    'Gemini',
    400,
    JSON.stringify([
      {
        error: {
          code: 400,
          message: 'The input token count (1048577) exceeds the maximum number of tokens allowed (1048575).',
          status: 'INVALID_ARGUMENT',
        },
      },
    ]),
    1_048_575,
    1_048_577,
  ],
  [
    'llama.cpp',
    400,
    message('the request exceeds the available context size, try increasing it', {
      code: 400,
      type: 'exceed_context_size_error',
      n_prompt_tokens: 5000,
      n_ctx: 4096,
    }),
    4096,
    5000,
  ],
  [
    'llama.cpp with numbers in its words',
    400,
    message('request (5,000 tokens) exceeds the available context size (4,096 tokens), try increasing it'),
    4096,
    5000,
  ],
  [
    'llama.cpp of earlier versions',
    400,
    message('the request exceeds the available context size. try increasing the context size or enable context shift'),
    undefined,
    undefined,
  ],
  [
    'vLLM without an error member',
    400,
    '{"object":"error","message":"This model\'s maximum context length is 4096 tokens. However, you requested 4500 tokens (3000 in the messages, 1500 in the completion).","type":"BadRequestError","param":null,"code":400}',
    4096,
    3000,
  ],
  [
    'vLLM whose answer does not fit',
    400,
    message(
      "'max_tokens' or 'max_completion_tokens' is too large: 32000. This model's maximum context length is 32768 tokens and your request has 1200 input tokens (32000 > 32768 - 1200).",
    ),
    32_768,
    1200,
  ],
  [
    'vLLM that adds prompt and answer',
    400,
    message(
      "This model's maximum context length is 128000 tokens. However, you requested 65535 output tokens and your prompt contains at least 62466 input tokens, for a total of at least 128001 tokens.",
    ),
    128_000,
    62_466,
  ],
  ['vLLM that computes the answer', 400, message('max_tokens must be at least 1, got -186.'), undefined, undefined],
  [
    'vLLM that cannot fit the prompt',
    400,
    message('The prompt (total length 25938) is too long to fit into the model (context length 4096).'),
    4096,
    25_938,
  ],
  ['Ollama', 400, '{"error":"the input length exceeds the context length"}', undefined, undefined],
  ['Ollama with the limit', 400, '{"error":"prompt too long; exceeded max context length by 12 tokens"}', undefined, undefined],
  [
    'LM Studio',
    400,
    '{"error":"Trying to keep the first 4500 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough."}',
    4096,
    4500,
  ],
  [
    'LM Studio of other versions',
    400,
    '{"error":"The number of tokens to keep from the initial prompt is greater than the context length."}',
    undefined,
    undefined,
  ],
  ['xAI', 400, '{"error":"This model\'s maximum prompt length is 131072 but the request contains 150000 tokens."}', 131_072, 150_000],
  [
    'Mistral',
    400,
    message('Prompt contains 10000 tokens and 0 draft tokens, too large for model with 8192 maximum context length'),
    8192,
    10_000,
  ],
  ['Moonshot', 400, message('Invalid request: Your request exceeded model token limit: 8192'), 8192, undefined],
  ['Cohere', 400, '{"message":"too many tokens: total number of tokens in the prompt cannot exceed 4081"}', 4081, undefined],
  ['Bedrock', 400, message('Input is too long for requested model.'), undefined, undefined],
  ['Groq', 400, message('Please reduce the length of the messages or completion.'), undefined, undefined],
  ['a local server with 404', 404, '{"error":"Context limit is 49152 tokens; prompt=51402 leaves 0 output tokens"}', 49_152, 51_402],
  ['FastAPI', 422, '{"detail":[{"msg":"Input length 9000 exceeds the context window of 8192 tokens","input":"x"}]}', 8192, 9000],
  ['plain text', 400, "Request rejected: this model's maximum context length is 8192 tokens.", 8192, undefined],
  ['an old server with 500 and both numbers', 500, message('prompt is too long: 5000 tokens > 4096 maximum'), 4096, 5000],
  ['a proxy with 413', 413, '<html><title>413 Request Entity Too Large</title></html>', undefined, undefined],
  ['413 without a body', 413, '', undefined, undefined],
  [
    'Anthropic with 413',
    413,
    message('Request exceeds the maximum allowed number of bytes.', { type: 'request_too_large' }),
    undefined,
    undefined,
  ],
]

test.each(refusals)('a refusal for length is recognised: %s', (_, status, body, windowTokens, sentTokens) => {
  expect(lengthRefusal(status, body)).toEqual({
    ...(windowTokens === undefined ? {} : { windowTokens }),
    ...(sentTokens === undefined ? {} : { sentTokens }),
  })
})

test.each([
  [
    'tokens per minute',
    429,
    message('Rate limit reached for gpt-4o on tokens per min (TPM): Limit 30000, Used 29000, Requested 5000.', {
      code: 'rate_limit_exceeded',
    }),
  ],
  [
    'tokens per minute with 413',
    413,
    message('Request too large for model on tokens per minute (TPM): Limit 6000, Requested 9000, please reduce your message size', {
      type: 'tokens',
      code: 'rate_limit_exceeded',
    }),
  ],
  ['tokens per minute with 400', 400, message('This request would exceed the rate limit of 40,000 input tokens per minute.')],
  ['too many tokens of the last minute', 400, message('Too many tokens in the last minute, slow down')],
  [
    'a limit of answers',
    400,
    message('max_tokens is too large: 100000. This model supports at most 4096 completion tokens, whereas you provided 100000.'),
  ],
  [
    'a limit of answers of Anthropic',
    400,
    message('max_tokens: 100000 > 64000, which is the maximum allowed number of output tokens for m'),
  ],
  [
    'credits',
    402,
    message('This request requires more credits, or fewer max_tokens. You requested up to 65536 tokens, but can only afford 4000.'),
  ],
  ['a schema', 400, message("Invalid schema for function 'read': In context=('properties', 'path'), schema must have a 'type' key.")],
  [
    'a string',
    400,
    message("Invalid 'messages[3].content': string too long. Expected a string with maximum length 1048576, but got 2097152."),
  ],
  ['a picture', 400, message('messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6291456 bytes > 5242880 bytes')],
  ['a picture with too many pixels', 400, message('image dimensions are too large')],
  ['a broken server', 500, message('failed to load the model: the maximum context length is not available')],
  ['an outage', 502, 'upstream connect error: maximum context length'],
  ['a key', 401, message('maximum context length is 8192 tokens')],
  [
    'a request that is repeated in the error',
    422,
    '{"detail":[{"msg":"field required","input":"the prompt is too long: 9 tokens > 8 maximum"}]}',
  ],
  ['nothing', 400, ''],
])('another refusal is not one for length: %s', (_, status, body) => {
  expect(lengthRefusal(status, body)).toBeUndefined()
})

test('an error inside a stream or an answer with 200 is recognised by its words alone', () => {
  const tooLong = failureOf({ error: { message: 'prompt is too long: 210,000 tokens > 200,000 maximum', code: 400 } }, 'p')
  expect([tooLong.code, tooLong.detail.windowTokens, tooLong.detail.sentTokens]).toEqual(['context_length', 200_000, 210_000])
  expect(failureOf({ code: 'context_length_exceeded', message: 'no' }, 'p').code).toBe('context_length')
  expect(failureOf({ type: 'rate_limit_error', message: 'too many tokens per minute' }, 'p').code).toBe('rate_limit')
  expect(failureOf(new Error('the request exceeds the available context size'), 'p').code).toBe('context_length')
})

test('numbers that no model has are not believed', () => {
  expect(lengthRefusal(400, message('maximum context length is 1 tokens'))).toEqual({})
  expect(lengthRefusal(400, message(`maximum context length is ${'9'.repeat(40)} tokens`))).toEqual({})
})

const numbered: readonly Wording[] = ['openai', 'anthropic', 'openrouter', 'gemini', 'llamaCpp', 'vllm', 'lmStudio']

describe.each(dialects)('$kind', (dialect) => {
  test.each([...numbered, 'responses', 'plain413'] as const)(
    'the refusal of %s reaches the runtime, with its numbers and the model',
    async (name) => {
      const { code, failure } = await serve(dialect, () => wordings[name](9000, 1000, 8192))
      expect(code).toBe('context_length')
      expect(failure?.detail).toMatchObject({ model: 'model-0', provider: 'far' })
      if (name === 'responses' || name === 'plain413') return
      const prompt = ['openai', 'openrouter', 'vllm'].includes(name) ? 8000 : 9000
      expect(failure?.detail).toMatchObject({ windowTokens: 8192, sentTokens: prompt })
    },
  )

  test('an error event in the middle of its own stream is recognised', async () => {
    const [first = ''] = dialect.events({ text: ['Hel'] })
    const event = dialect.errorEvent('invalid_request_error', 'prompt is too long: 9000 tokens > 8192 maximum')
    const { failure } = await serve(dialect, () => sends([first, event]))
    expect(failure?.detail).toMatchObject({ windowTokens: 8192, sentTokens: 9000 })
    expect(failure?.code).toBe('context_length')
  })

  test('a rate limit is none', async () => {
    const { code } = await serve(dialect, plain(message('too many tokens per minute'), 'application/json', 429), { maxRetries: 0 })
    expect(code).toBe('rate_limit')
  })
})
