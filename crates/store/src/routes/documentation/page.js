"use strict";

// Shows the OpenAPI document, and sends requests of its examples. All text of the document goes into the page as text,
// never as HTML.

const METHODS = ["get", "put", "post", "patch", "delete"];

function element(name, text, ...children) {
  const made = document.createElement(name);
  if (text) made.textContent = text;
  made.append(...children);
  return made;
}

function exampleOf(content) {
  const json = content && content["application/json"];
  if (!json) return null;
  if (json.example !== undefined) return json.example;
  const [first] = Object.values(json.examples || {});
  return first === undefined ? null : first.value;
}

function schemaOf(whole, schema) {
  if (schema && schema.$ref) {
    const name = schema.$ref.split("/").pop();
    return ((whole.components || {}).schemas || {})[name] || {};
  }
  return schema || {};
}

function fields(whole, content) {
  const schema = schemaOf(whole, ((content || {})["application/json"] || {}).schema);
  const table = element("table");
  for (const [name, field] of Object.entries(schema.properties || {})) {
    const type = schemaOf(whole, field).type || "";
    const row = element("tr", "", element("td", "", element("code", name)), element("td", String(type)));
    row.append(element("td", field.description || ""));
    table.append(row);
  }
  return table;
}

function tryIt(method, path, parameters, body) {
  const box = element("div");
  const inputs = parameters.map((parameter) => {
    const input = element("input");
    input.placeholder = parameter.example === undefined ? "" : String(parameter.example);
    const label = element("label", parameter.name + " ");
    label.append(input);
    box.append(label, " ");
    return [parameter, input];
  });
  const text = element("textarea");
  if (body !== null) {
    text.value = JSON.stringify(body, null, 2);
    box.append(text);
  }
  const answer = element("pre");
  const send = element("button", "Send");
  send.addEventListener("click", async () => {
    let target = path;
    const query = new URLSearchParams();
    for (const [parameter, input] of inputs) {
      const value = input.value || input.placeholder;
      if (parameter.in === "path") target = target.replace(`{${parameter.name}}`, encodeURIComponent(value));
      else if (input.value) query.set(parameter.name, input.value);
    }
    const headers = { "X-Requested-With": "annulus" };
    if (body !== null) headers["Content-Type"] = "application/json";
    const options = { method: method.toUpperCase(), headers };
    if (body !== null) options.body = text.value;
    try {
      const parts = query.toString();
      const response = await fetch(target + (parts ? "?" + parts : ""), options);
      answer.textContent = `${response.status}\n${await response.text()}`;
    } catch (error) {
      answer.textContent = String(error);
    }
  });
  box.append(send, answer);
  return box;
}

function show(whole, path, method, operation, shared) {
  const method_name = element("span", method.toUpperCase());
  method_name.className = "method";
  const summary = element("summary", "", method_name, element("code", path), " " + (operation.summary || ""));
  const details = element("details", "", summary);
  details.dataset.path = path;
  if (operation.description) details.append(element("p", operation.description));
  const content = (operation.requestBody || {}).content;
  details.append(fields(whole, content));
  for (const [status, response] of Object.entries(operation.responses || {})) {
    details.append(element("p", `${status}: ${response.description || ""}`));
    const example = exampleOf(response.content);
    if (example !== null) details.append(element("pre", JSON.stringify(example, null, 2)));
  }
  const parameters = [...shared, ...(operation.parameters || [])].filter((one) => one.in !== "header");
  details.append(tryIt(method, path, parameters, content ? exampleOf(content) || {} : null));
  return details;
}

async function load() {
  const main = document.getElementById("operations");
  const response = await fetch("/api-docs/openapi.json");
  if (!response.ok) {
    main.replaceChildren(element("p", `${response.status}: ${await response.text()}`));
    return;
  }
  const whole = await response.json();
  const shown = [];
  for (const [path, item] of Object.entries(whole.paths)) {
    for (const method of METHODS) {
      if (item[method]) shown.push(show(whole, path, method, item[method], item.parameters || []));
    }
  }
  main.replaceChildren(...shown);
  document.getElementById("filter").addEventListener("input", (event) => {
    for (const one of shown) one.hidden = !one.dataset.path.includes(event.target.value);
  });
}

load();
