// The interface as a page for people, made from the OpenAPI document: what machines read and what people read cannot differ. One answer,
// no script, nothing from anywhere else; the policy in its head forbids all but its own style and its own icon.
import { createHash } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { curlExample } from './curlExample.js';
import { docsStyle } from './docsStyle.js';
import { Html, html } from './html.js';
import type { ApiDocument, Operation, Parameter } from './openapi.js';
import { boundsText, descriptionOf, fieldRows, typeText, type FieldRow } from './schemaText.js';

const styleHash = createHash('sha256').update(docsStyle).digest('base64');
/** As one piece: the policy names the hash of exactly these bytes. */
const style = new Html(`<style>${docsStyle}</style>`);
const icon =
  "data:image/svg+xml,%3Csvg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 32 32'%3E%3Crect width='32' height='32' rx='8' fill='%230b6e78'/%3E%3Cpath d='M6 12q5-5 10 0t10 0M6 20q5-5 10 0t10 0' fill='none' stroke='%23fff' stroke-width='3' stroke-linecap='round'/%3E%3C/svg%3E";

export const docsHeaders: Record<string, string> = {
  'Content-Type': 'text/html; charset=utf-8',
  'Content-Security-Policy': [
    "default-src 'none'",
    `style-src 'sha256-${styleHash}'`,
    'img-src data:',
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
  'X-Content-Type-Options': 'nosniff',
  'Referrer-Policy': 'no-referrer',
  'Cache-Control': 'no-cache',
};

export function docsPage(document: ApiDocument): string {
  const { info, tags } = document;
  const groups = tags.map((tag) => ({ ...tag, shown: operationsOf(document, tag.name) }));
  const page = html`<!doctype html>
    <html lang="en">
      <head>
        <meta charset="utf-8" />
        <meta name="viewport" content="width=device-width, initial-scale=1" />
        <meta name="color-scheme" content="light dark" />
        <title>${info.title}: the HTTP interface</title>
        <link rel="icon" href="${icon}" />
        ${style}
      </head>
      <body>
        <a class="skip" href="#content">To the content</a>
        <nav aria-label="Groups">
          <p class="brand"><a href="/docs">${info.title}</a> <small>${info.version}</small></p>
          <ul>
            <li><a href="#start">Start here</a></li>
            ${groups.map(
              ({ name, shown }) =>
                html`<li>
                  <a href="#group-${name}">${name} <span>${shown.length}</span></a>
                </li>`,
            )}
            <li><a href="#errors">Errors</a></li>
          </ul>
        </nav>
        <main id="content">
          ${introduction(document)}
          ${groups.map(({ name, description, shown }) => group(name, description, shown))} ${errors(document)}
        </main>
      </body>
    </html>`;
  return page.text;
}

interface Shown {
  methods: string[];
  path: string;
  operation: Operation;
}

/** HEAD is shown with the GET that it belongs to. */
function operationsOf({ paths }: ApiDocument, tag: string): Shown[] {
  return Object.entries(paths).flatMap(([path, item]) =>
    Object.entries(item)
      .filter(([method, { tags }]) => tags[0] === tag && !(method === 'head' && item['get']))
      .map(([method, operation]) => ({
        methods: [method.toUpperCase(), ...(method === 'get' && item['head'] ? ['HEAD'] : [])],
        path,
        operation,
      })),
  );
}

function introduction({ info }: ApiDocument): Html {
  return html`<section id="start">
    <h1>The HTTP interface</h1>
    <p class="lead">${info.description}</p>
    <p>
      JSON in, JSON out. This page is made from <a href="/openapi.json"><code>/openapi.json</code></a
      >, which generators of clients can read. The examples work in a shell after:
    </p>
    <pre><code>export SLUICE_URL=http://127.0.0.1:7420
export SLUICE_KEY=…</code></pre>
    <p class="fine">Where the server has no keys, leave out the header that carries one.</p>
    <div class="facts">
      <div>
        <h3>Who may do what</h3>
        <dl>
          <dt><b class="role viewer">viewer</b></dt>
          <dd>reads</dd>
          <dt><b class="role operator">operator</b></dt>
          <dd>also changes what runs: uploads, files, jobs, queues</dd>
          <dt><b class="role admin">admin</b></dt>
          <dd>also decides who may do what, and where data lies</dd>
        </dl>
        <p>
          A key belongs to a tenant and sees that tenant’s things only; what is somebody else’s does not exist
          for it. What concerns the whole <b class="scope">installation</b> needs a key of <code>*</code>,
          which names a tenant in <code>X-Sluice-Tenant</code> where one is meant.
        </p>
      </div>
      <div>
        <h3>What holds everywhere</h3>
        <ul>
          <li>A key goes into <code>Authorization: Bearer …</code> or <code>X-Sluice-Key</code>.</li>
          <li>
            Lists come in pages: ask again with the <code>next</code> of the last answer until it is
            <code>null</code>.
          </li>
          <li>Refusals have a <a href="#errors">stable code</a> and say what to do.</li>
          <li><code>Retry-After</code> tells when coming back helps.</li>
          <li>Every answer has an <code>X-Request-Id</code>, by which the log knows it.</li>
          <li>
            A browser <a href="#group-session">signs in</a> and has a cookie; to change anything it also sends
            <code>X-Sluice-CSRF</code>.
          </li>
          <li>A parameter that is given twice is refused, and so is a field that nobody knows.</li>
        </ul>
      </div>
    </div>
  </section>`;
}

function group(name: string, description: string | undefined, shown: Shown[]): Html {
  return html`<section id="group-${name}">
    <h2><a href="#group-${name}">${name}</a></h2>
    ${description !== undefined && html`<p>${description}</p>`} ${shown.map(route)}
  </section>`;
}

function route({ methods, path, operation }: Shown): Html {
  const { parameters = [], requestBody, responses } = operation;
  const [method = 'GET'] = methods;
  return html`<details class="route">
    <summary>
      <span class="methods"
        >${methods.map((each) => html`<b class="method ${each.toLowerCase()}">${each}</b>`)}</span
      >
      <code class="path">${pathParts(path)}</code>
      <span class="who">${whoChips(operation)}</span>
      <span class="what">${operation.summary}</span>
    </summary>
    <div class="body" id="${operation.operationId}">
      <p class="fine">
        ${operation.description}
        ${
          typeof operation['x-audit'] === 'string' &&
          html` The audit log calls it <code>${operation['x-audit']}</code>.`
        }
        <a href="#${operation.operationId}" aria-label="A link to this">#</a>
      </p>
      ${parameterTable(parameters)} ${bodyTable(requestBody)} ${answerList(responses)}
      <h4>Example</h4>
      <pre><code>${curlExample(method, path, operation)}</code></pre>
    </div>
  </details>`;
}

function pathParts(path: string): Html[] {
  return path
    .split(/(\{\w+\})/)
    .map((part) => (part.startsWith('{') ? html`<i>${part}</i>` : breakable(part)));
}

/** A long address may go on in the next line after a slash. */
function breakable(text: string): Html {
  return html`${text.split(/(?<=\/)/).map((piece) => html`${piece}<wbr />`)}`;
}

function whoChips(operation: Operation): Html[] {
  const { 'x-needs': needs, 'x-of': of } = operation;
  if (operation['x-service-key']) return [html`<b class="role">service</b>`];
  if (needs === 'nobody') return [html`<b class="role">everybody</b>`];
  return [
    html`<b class="role ${needs}">${needs}</b>`,
    ...(of === 'installation' ? [html` <b class="scope">installation</b>`] : []),
    ...(operation['x-tokens'] ? [html` <b class="scope">token</b>`] : []),
    ...(operation['x-links'] ? [html` <b class="scope">link</b>`] : []),
  ];
}

function parameterTable(parameters: Parameter[]): Html | false {
  return (
    parameters.length > 0 &&
    html`<h4>Parameters</h4>
      ${table(
        ['name', 'in', 'type', 'meaning'],
        parameters.map(({ name, in: place, schema, description, required }) => [
          html`<code>${name}</code>${required && needed}`,
          place,
          html`${typeText(schema)}${small(boundsText(schema))}`,
          description ?? descriptionOf(schema),
        ]),
      )}`
  );
}

function bodyTable(requestBody: Operation['requestBody']): Html | false {
  if (!requestBody) return false;
  const [type = '', { schema = {} } = {}] = Object.entries(requestBody.content)[0] ?? [];
  const rows = fieldRows(schema);
  const note = type === 'application/json' ? '' : 'The bytes of the file, as they are.';
  return html`<h4>Body <small>${type}${!requestBody.required && ', may be left out'}</small></h4>
    ${note !== '' && html`<p>${note}</p>`}
    ${rows.length > 0 && table(['field', 'type', 'meaning'], rows.map(bodyRow))}`;
}

function bodyRow({ name, type, bounds, required, description }: FieldRow): (Html | string)[] {
  return [html`<code>${name}</code>${required && needed}`, html`${type}${small(bounds)}`, description];
}

const needed = html` <span class="needed" title="required">required</span>`;

function small(text: string): Html | false {
  return text !== '' && html`<br /><small>${text}</small>`;
}

function answerList(responses: Operation['responses']): Html {
  const usual = Object.entries(responses).filter(([status]) => /^[23]/.test(status));
  const refused = Object.keys(responses).filter((status) => status.startsWith('4'));
  return html`<h4>Answers</h4>
    <ul class="answers">
      ${usual.map(([status, { description, content }]) => {
        const [type] = Object.keys(content ?? {});
        return html`<li>
          <b class="status">${status}</b> ${description} ${type !== undefined && html`<small>${type}</small>`}
        </li>`;
      })}
      <li>
        ${refused.map((status) => html`<b class="status refused">${status}</b> `)}
        <a href="#errors">refusals</a>
      </li>
    </ul>`;
}

function errors({ 'x-error-codes': codes }: ApiDocument): Html {
  const statuses = [...new Set(Object.values(codes))];
  const example = {
    error: {
      code: 'NODE_NOT_FOUND',
      message: 'what is wrong, and what to do',
      retryable: false,
      details: {},
      requestId: '…',
    },
  };
  return html`<section id="errors">
    <h2><a href="#errors">Errors</a></h2>
    <p>
      Every refusal has this body. Programs look at the <code>code</code>, which stays as it is; people read
      the <code>message</code>, which may change. Where <code>retryable</code> is true, the same request may
      succeed later.
    </p>
    <pre><code>${JSON.stringify(example, undefined, 2)}</code></pre>
    ${table(
      ['status', 'codes'],
      statuses.map((status) => [
        html`<b class="status refused">${status}</b><br /><small>${STATUS_CODES[status]}</small>`,
        html`${Object.keys(codes)
          .filter((code) => codes[code] === status)
          .map((code) => html`<code>${code}</code> `)}`,
      ]),
    )}
    <p>
      Codes that are not listed come with 400, or with 503 if trying again helps. 500 is a defect of ours.
    </p>
  </section>`;
}

function table(heads: string[], rows: (Html | string)[][]): Html {
  return html`<div class="table">
    <table>
      <thead>
        <tr>
          ${heads.map((head) => html`<th scope="col">${head}</th>`)}
        </tr>
      </thead>
      <tbody>
        ${rows.map(
          (row) =>
            html`<tr>
              ${row.map((cell) => html`<td>${cell}</td>`)}
            </tr>`,
        )}
      </tbody>
    </table>
  </div>`;
}
